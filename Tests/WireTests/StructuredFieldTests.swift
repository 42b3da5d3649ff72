import CountersignWire
import Testing

@Suite struct StructuredFieldTests {
    @Test("dictionaries", arguments: goodTable)
    func accepts(_ text: String) {
        #expect(problem(of: text) == nil)
    }

    @Test("not dictionaries", arguments: badTable)
    func refuses(_ text: String) {
        #expect(problem(of: text) != nil)
    }

    @Test("items", arguments: itemsTable)
    func items(_ row: (text: String, item: StructuredField.BareItem?)) {
        let bytes = Array(row.text.utf8)
        var reader = StructuredField(bytes.span)
        let item = try? reader.bareItem()
        #expect(item == row.item)
    }

    private func problem(of text: String) -> ParseError? {
        do {
            try StructuredField.checkDictionary(Array(text.utf8).span)
            return nil
        } catch {
            return error
        }
    }

    /// Every prefix, and every single byte changed, of values that are good: an answer each time, never a
    /// trap.
    @Test func endsOnAnyBytes() {
        var count = 0
        for text in StructuredFieldTests.goodTable {
            let bytes = Array(text.utf8)
            for end in 0...bytes.count {
                try? StructuredField.checkDictionary(bytes.span.extracting(0..<end))
                count += 1
            }
            for index in bytes.indices {
                for byte in UInt8.min...UInt8.max {
                    var changed = bytes
                    changed[index] = byte
                    try? StructuredField.checkDictionary(changed.span)
                    count += 1
                }
            }
        }
        #expect(count > 10_000)
    }

    private static let goodTable = [
        "", "a", "a=1", "a=1, b=2", "a=1,b=2", "a=1 \t,\t b", "a;x;y=1", "a=?0;x=?1", "*a-_.*=tok:/*!#",
        "a=(\"x\" \"y\";req);created=1;nonce=\"n\\\"\\\\\"", "a=()", "a=( 1  2 )", "a=( )", "s=:AAAA:",
        "s=::", "n=-999999999999999, d=-123456789012.123", "t=@1618884473, u=%\"caf%c3%a9\"", "  a=1",
        "a=1  ", "a;  x=1", "sig=(\"date\" \"@authority\");created=1618884473;keyid=\"k\"",
    ]

    private static let badTable = [
        "A=1", "1=1", "=1", "a=", "a=1,", "a=1,,b", ",a", "a=1 b=2", "a==1", "a=(", "a=(1", "a=(1 2",
        "a=(1,2)", "a=(1)2", "a=(\"x\"\"y\")", "a=\"", "a=\"\\a\"", "a=\"\\", "a=\"\u{e9}\"", "a=\"\n\"",
        "a=:A", "a=:A A:", "a=?2", "a=?", "a=-", "a=--1", "a=1.", "a=.1", "a=1.1234", "a=1234567890123.1",
        "a=1234567890123456", "a=@", "a=@1.0", "a=@a", "a=%", "a=%\"%C3\"", "a=%\"%zz\"", "a=%\"x", "a;",
        "a;=1", "a;X", "a=1;x=", "a=\u{0}", "a=é", "\ta=1",
    ]

    private static let itemsTable: [(text: String, item: StructuredField.BareItem?)] = [
        ("1", .integer(1)), ("-0", .integer(0)), ("007", .integer(7)),
        ("999999999999999", .integer(999_999_999_999_999)),
        ("-1.5", .decimal(ByteRange(from: 0, to: 4))), ("\"a b\"", .string(ByteRange(from: 1, to: 4))),
        ("tok", .token(ByteRange(from: 0, to: 3))),
        (":AA==:", .bytes(ByteRange(from: 1, to: 5))), ("?1", .boolean(true)), ("?0", .boolean(false)),
        ("@-5", .date(-5)),
        ("%\"a%c3\"", .displayString(ByteRange(from: 2, to: 6))), ("", nil), ("1000000000000000", nil),
        ("(", nil),
    ]
}
