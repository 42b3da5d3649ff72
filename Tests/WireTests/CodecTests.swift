import CountersignWire
import TestRounds
import Testing

@Suite struct CodecTests {
    @Test("Base64 of RFC 4648 §10 and what is not Base64", arguments: base64Table)
    func base64(_ row: (text: String, bytes: String?)) {
        let decoded = Base64.decode(row.text, as: .standard)
        #expect(decoded == row.bytes.map { Array($0.utf8) })
        if let bytes = row.bytes {
            let text = Base64.encode(Array(bytes.utf8).span, as: .standard)
            #expect(text == row.text)
        }
    }

    @Test("base64url has no padding and its own two letters", arguments: base64URLTable)
    func base64URL(_ row: (text: String, bytes: [UInt8]?)) {
        #expect(Base64.decode(row.text, as: .url) == row.bytes)
        if let bytes = row.bytes {
            let text = Base64.encode(bytes.span, as: .url)
            #expect(text == row.text)
        }
    }

    @Test(
        "where bytes are met in others",
        arguments: [
            ("a;keyid=", ";keyid=", 1), (";;;keyid=x", ";keyid=", 2), ("abc", "abc", 0), ("abc", "abcd", nil),
            ("aab", "ab", 1), ("", "a", nil), ("a", "", nil), ("abab", "abb", nil),
        ] as [(String, String, Int?)])
    func patterns(_ text: String, pattern: String, index: Int?) {
        let (text, pattern) = (Array(text.utf8), Array(pattern.utf8))
        #expect(text.span.firstIndex(of: pattern.span) == index)
    }

    @Test func shortBytesKeepToTheirCapacity() {
        for (count, fits) in [(0, true), (64, true), (65, false)] {
            let bytes = [UInt8](repeating: 7, count: count)
            let encoded = Array(Base64.encode(bytes.span, as: .url).utf8)
            let digits = Array(Hex.encode(bytes.span).utf8)
            let copies = [
                ShortBytes(bytes.span), Base64.decodeShort(encoded.span, as: .url),
                Hex.decodeShort(digits.span),
            ]
            for copy in copies { #expect(copy?.array == (fits ? bytes : nil)) }
        }
    }

    @Test("hexadecimal digits in lower case, in pairs", arguments: hexTable)
    func hex(_ row: (text: String, bytes: [UInt8]?)) {
        #expect(Hex.decode(row.text) == row.bytes)
        if let bytes = row.bytes {
            let text = Hex.encode(bytes.span)
            #expect(text == row.text)
        }
    }

    @Test("percent-encoding", arguments: [("a-Z0._~", "a-Z0._~"), ("a b/ü%", "a%20b%2F%C3%BC%25"), ("", "")])
    func percent(_ row: (plain: String, encoded: String)) {
        var text: [UInt8] = []
        PercentEncoding.encode(Array(row.plain.utf8).span, into: &text)
        #expect(String(decoding: text, as: UTF8.self) == row.encoded)
    }

    @Test("forms", arguments: formsTable)
    func form(_ row: (text: String, pairs: [[String]]?)) {
        #expect(pairs(of: row.text) == row.pairs)
    }

    @Test(
        "civil time there and back",
        arguments: [0, 1, 951_868_799, 1_795_252_087, 253_402_300_799] as [Int64])
    func civilTime(_ seconds: Int64) {
        let text = CivilTime(seconds: seconds).description
        let read = CivilTime(Array(text.utf8).span)
        #expect(read?.seconds == seconds)
    }

    /// The reader looks at sixteen bytes at a time; this one at one.
    private func pairsByteByByte(of text: [UInt8]) -> [[Int]]? {
        guard !text.isEmpty else { return [] }
        var (found, start): ([[Int]], Int) = ([], 0)
        for part in text.split(separator: UInt8(ascii: "&"), omittingEmptySubsequences: false) {
            let equals = part.firstIndex(of: UInt8(ascii: "=")) ?? part.endIndex
            guard equals > part.startIndex else { return nil }
            let isEscaped = part.contains { [UInt8(ascii: "%"), UInt8(ascii: "+"), 0].contains($0) }
            found.append([start, equals, min(equals + 1, part.endIndex), part.endIndex, isEscaped ? 1 : 0])
            start = part.endIndex + 1
        }
        return found
    }

    @Test("forms, read by blocks and by bytes")
    func formBlocks() {
        var random = seededRandom()
        let alphabet = Array("aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaabcdefgh0=&%+".utf8) + [0, 0xFF]
        for _ in 0..<rounds(20_000) {
            let length = Int(random.next() % 90)
            let text = (0..<length).map { _ in alphabet[Int(random.next() % UInt64(alphabet.count))] }
            var reader = Form.Reader()
            var found: [[Int]]? = []
            do {
                while let pair = try reader.next(in: text.span) {
                    let isEscaped = pair.encoding == .escaped ? 1 : 0
                    found?.append([
                        Int(pair.name.start), Int(pair.name.end), Int(pair.value.start), Int(pair.value.end),
                        isEscaped,
                    ])
                }
            } catch {
                found = nil
            }
            #expect(found == pairsByteByByte(of: text), "\(text)")
        }
    }

    @Test("quoted text and Base64, by blocks and by bytes")
    func structuredFieldBlocks() {
        var random = seededRandom()
        for _ in 0..<rounds(20_000) {
            let length = Int(random.next() % 70)
            let most: UInt64 = random.next() % 3 == 0 ? 256 : 96
            let text = (0..<length).map { _ in UInt8(truncatingIfNeeded: 32 + random.next() % most) }
            let plainEnd = text.firstIndex { $0 < 0x20 || $0 > 0x7E || $0 == 0x22 || $0 == 0x5C }
            #expect(text.span.endOfPlainText(from: 0) == plainEnd ?? text.count)
            let value = Array(":".utf8) + text + Array(":".utf8)
            var field = StructuredField(value.span)
            let letters = text.prefix { "+/=".utf8.contains($0) || ASCII.isLetter($0) || ASCII.isDigit($0) }
            let isClosed = letters.count == text.count || text[letters.count] == UInt8(ascii: ":")
            let item = try? field.bareItem()
            #expect((item != nil) == isClosed, "\(text)")
        }
    }

    private func pairs(of text: String) -> [[String]]? {
        let bytes = Array(text.utf8)
        var reader = Form.Reader()
        var buffer = ByteBuffer(capacity: 256)
        var found: [[String]] = []
        do {
            while let pair = try reader.next(in: bytes.span) {
                let name = try Form.decode(pair.name, of: bytes.span, into: &buffer)
                let value = try Form.decode(pair.value, of: bytes.span, into: &buffer)
                found.append([
                    buffer.span.extracting(name.range).text, buffer.span.extracting(value.range).text,
                ])
            }
            return found
        } catch {
            return nil
        }
    }

    private static let base64Table: [(text: String, bytes: String?)] = [
        ("", ""), ("Zg==", "f"), ("Zm8=", "fo"), ("Zm9v", "foo"), ("Zm9vYg==", "foob"), ("Zm9vYmE=", "fooba"),
        ("Zm9vYmFy", "foobar"), ("Zg", nil), ("Zg=", nil), ("Zg===", nil), ("Zh==", nil), ("Zm9=", nil),
        ("Z", nil), ("Zm9v\n", nil), ("Zm 9v", nil), ("Zm-v", nil), ("====", nil), ("=", nil),
        ("Zg==Zg==", nil), ("Zm9v====", nil),
    ]

    private static let base64URLTable: [(text: String, bytes: [UInt8]?)] = [
        ("", []), ("-_8", [0xFB, 0xFF]), ("Zg", [0x66]), ("Zg==", nil), ("+/8", nil), ("Zh", nil), ("Z", nil),
    ]

    private static let hexTable: [(text: String, bytes: [UInt8]?)] = [
        ("", []), ("00ff", [0, 255]), ("0", nil), ("0G", nil), ("FF", nil), (" 0", nil),
    ]

    private static let formsTable: [(text: String, pairs: [[String]]?)] = [
        ("", []), ("a=1", [["a", "1"]]), ("a=1&b=2", [["a", "1"], ["b", "2"]]), ("a", [["a", ""]]),
        ("a&b", [["a", ""], ["b", ""]]), ("a=", [["a", ""]]), ("a=b=c", [["a", "b=c"]]),
        ("a=+b%2B", [["a", " b+"]]), ("%61=%C3%BC", [["a", "ü"]]), ("a=1&", nil), ("&a=1", nil),
        ("a=1&&b=2", nil), ("=1", nil), ("&", nil), ("a=%", nil), ("a=%4", nil), ("a=%4&b=1", nil),
        ("a=%4g", nil), ("a=%00", nil), ("a=\0", nil), ("a%00=1", nil),
    ]
}
