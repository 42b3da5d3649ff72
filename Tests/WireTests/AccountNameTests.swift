import CountersignWire
import Testing

@Suite struct AccountNameTests {
    private struct Spelled: Decodable {
        var text: String
        var spelling: String?
    }

    @Test("one spelling each, as another implementation of Unicode 14.0 has it")
    func knownAnswers() throws {
        for row in try Vectors.load("account-name/cases.json", as: Spelled.self) {
            let name = try? AccountName(normalizing: row.text)
            // By bytes: `==` would call any two normal forms equal.
            #expect(name?.bytes == row.spelling.map { Array($0.utf8) }, "\(scalars(row.text))")
        }
    }

    @Test("what is normalised is left as it is, and is the only spelling that a server takes")
    func idempotent() throws {
        for row in try Vectors.load("account-name/cases.json", as: Spelled.self) {
            guard let name = try? AccountName(normalizing: row.text) else { continue }
            #expect(try AccountName(normalizing: name.bytes.span) == name, "\(scalars(row.text))")
            #expect(try AccountName(checking: name.bytes.span) == name, "\(scalars(row.text))")
            let typed = Array(row.text.utf8)
            guard typed != name.bytes else { continue }
            #expect(throws: AccountName.AccountNameError.notNormal, "\(scalars(row.text))") {
                try AccountName(checking: typed.span)
            }
        }
    }

    @Test("every character there is, alone: taken if, and only if, Unicode 14.0 has it and it can be seen")
    func everyCharacter() throws {
        let ranges = try Vectors.load("account-name/characters.json", as: [UInt32].self)
        var range = 0
        var wrong: [UInt32] = []
        for number in UInt32(0)..<0x110000 {
            guard let scalar = Unicode.Scalar(number) else { continue }
            while range < ranges.count, ranges[range][1] < number { range += 1 }
            let expected = range < ranges.count && ranges[range][0] <= number
            if (AccountNameCharacters.rejection(of: scalar) == nil) != expected { wrong.append(number) }
        }
        #expect(wrong.isEmpty, "\(wrong.prefix(10).map { String($0, radix: 16) })")
    }

    @Test("what cannot be taken is named", arguments: refusedTable)
    func refused(_ row: (text: [UInt8], problem: AccountName.AccountNameError, message: String)) {
        #expect(throws: row.problem) { try AccountName(normalizing: row.text.span) }
        #expect(row.problem.description.contains(row.message))
    }

    @Test("ASCII letters have no case in a name, other letters have")
    func letterCase() throws {
        #expect(try AccountName(normalizing: "ALICE") == AccountName(normalizing: "alice"))
        #expect(try AccountName(normalizing: "É") != AccountName(normalizing: "é"))
        // Not an ASCII letter, but composes to one.
        #expect(try AccountName(normalizing: "\u{212A}elvin") == AccountName(normalizing: "kelvin"))
    }
}

private func scalars(_ text: String) -> [String] { text.unicodeScalars.map { String($0.value, radix: 16) } }

private let refusedTable: [(text: [UInt8], problem: AccountName.AccountNameError, message: String)] = [
    ([], .empty, "at least one"),
    (Array(String(repeating: "a", count: 129).utf8), .tooLong, "128 bytes"),
    (Array(String(repeating: "a", count: 513).utf8), .tooLong, "128 bytes"),
    ([0x61, 0xFF], .notUTF8, "UTF-8"),
    ([0xC0, 0x80], .notUTF8, "UTF-8"),
    ([0xED, 0xA0, 0x80], .notUTF8, "UTF-8"),
    ([0x61, 0], .character(0, .nul), "U+0000"),
    ([0x61, 0x0A], .character(0x0A, .control), "control character (U+000A)"),
    (Array("a\u{200D}b".utf8), .character(0x200D, .format), "format character (U+200D)"),
    (Array("a\u{FE0F}".utf8), .character(0xFE0F, .invisible), "invisible"),
    (Array("a\u{A0}b".utf8), .character(0xA0, .space), "white space"),
    (Array("\u{E000}".utf8), .character(0xE000, .privateUse), "private"),
    (Array("\u{1FAE8}".utf8), .character(0x1FAE8, .unknown), "U+1FAE8"),
    (Array(" a".utf8), .outerSpace, "begins"),
    (Array("a ".utf8), .outerSpace, "ends"),
    (Array("a  b".utf8), .doubleSpace, "two spaces"),
]
