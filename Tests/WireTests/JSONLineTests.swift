// Proves that a line of the log is valid JSON and bounded, whatever bytes a caller sends, and that no text of a
// refusal is longer than its bound.
import CountersignWire
import Testing

@Suite("Log lines") struct JSONLineTests {
    private static let long = 30_000

    /// Texts that a caller can send, each longer than any bound.
    private static let texts: [String] = [
        String(repeating: "n", count: long), String(repeating: "\u{1}", count: long),
        String(repeating: "\"", count: long), String(repeating: "é", count: long),
        String(repeating: "\u{1F511}", count: long), "e" + String(repeating: "\u{301}", count: long),
    ]

    private func text(of line: JSONLine) -> String { String(decoding: line.bytes, as: UTF8.self) }

    @Test(arguments: [
        ("short", 10, "short"), ("0123456789", 10, "0123456789"), ("0123456789a", 10, "0123…"),
        ("\"\"\"\"\"", 10, "\"\"\"\"\""), ("\"\"\"\"\"\"", 10, "\"\"…"), ("éa", 7, "éa"), ("ééé", 12, "é…"),
        ("\u{1F511}\u{1F511}\u{1F511}", 24, "\u{1F511}…"), ("", 6, ""),
    ])
    func aTextIsCutAtACharacter(text: String, most: Int, expected: String) {
        #expect(text.cut(toEscaped: most) == expected)
    }

    @Test(arguments: texts) func eachTextIsCut(text: String) throws {
        for value in [Array(text.utf8), Array(text.utf8) + [0xFF], [0x80] + Array(text.utf8)] {
            var line = JSONLine()
            line.add("path", value: value.span)
            line.add("code", value: "malformed")
            line.end()
            #expect(line.bytes.count <= JSONLine.longestText + 40)
            let document = try JSONReader.read(line.bytes)
            #expect(document.root["code"]?.string == "malformed")
            let cut = try #require(document.root["path"]?.string)
            #expect(cut.unicodeScalars.last == "…" && cut.utf8.count >= 150)
        }
    }

    @Test func aWholeLineIsBounded() throws {
        var line = JSONLine(reusing: Array("before".utf8))
        let names: [StaticString] = ["a", "b", "c", "d", "e", "f"]
        for (name, text) in zip(names, JSONLineTests.texts) { line.add(name, value: text) }
        line.add("number", value: .min)
        line.end()
        let whole = Array(line.bytes.dropFirst("before".utf8.count))
        #expect((JSONLine.longest - 100...JSONLine.longest).contains(whole.count))
        #expect(try JSONReader.read(whole).root["a"]?.string != nil)
    }

    @Test func anObjectThatIsNoLineIsWhole() {
        var claims = JSONLine(for: .wholeObject)
        claims.add("path", value: JSONLineTests.texts[0])
        claims.end()
        #expect(claims.bytes.count == JSONLineTests.long + 11)
    }

    @Test(arguments: texts) func noDetailIsLong(text: String) {
        func escaped(_ detail: String) -> Int {
            var line = JSONLine(for: .wholeObject)
            line.add("d", value: detail)
            line.end()
            return line.bytes.count - #"{"d":""}"#.utf8.count
        }
        var refusal = Refusal(.malformed, detail: "form parameters: \(text) twice")
        #expect((400...Refusal.longestDetail).contains(escaped(refusal.detail)))
        #expect(refusal.detail.hasPrefix("form parameters: ") && refusal.detail.unicodeScalars.last == "…")
        refusal.detail = "\(text) changed"
        #expect((400...Refusal.longestDetail).contains(escaped(refusal.detail)))
        refusal.detail += text
        #expect((400...Refusal.longestDetail).contains(escaped(refusal.detail)))
    }

    @Test func aCutLeavesNoPartOfAToken() {
        let token = "b_" + String(repeating: "Secret7-", count: 6)
        for length in 430..<560 {
            let detail = Refusal(
                .malformed, detail: String(repeating: " ", count: length) + token + " twice, and " + token
            ).detail
            #expect(!detail.contains("Secret"), "after \(length) bytes")
        }
    }
}
