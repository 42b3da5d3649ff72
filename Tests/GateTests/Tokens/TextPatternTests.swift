import CountersignGate
import CountersignWire
import TestRounds
import Testing

/// Patterns match as documented, unknown syntax is refused, and matching takes time linear in the text.
@Suite struct TextPatternTests {
    private func found(_ text: String, in sent: String) throws -> String? {
        let bytes = Array(text.utf8)
        // A macro takes no span.
        let pattern = TextPattern(bytes.span)
        let read = try #require(pattern)
        let input = Array(sent.utf8)
        return read.capture(in: input.span).map { String(decoding: input[$0], as: UTF8.self) }
    }

    @Test(
        "what is found",
        arguments: [
            (#"Shop\/([0-9.]+)"#, "Shop/1.2 iOS", "1.2"), (#"Shop\/([0-9.]+)"#, "Shop/ Shop/3", "3"),
            (#"Shop\/([0-9.]+)"#, "ShShop/4", "4"), (#"([0-9]+)\.x"#, "12.34.x", "34"),
            (#"([a]+)a"#, "aaaa", "aaa"), (#"a([b]+)[c]+d"#, "abccabbbccd", "bbb"),
            (#"(ab)"#, "xxabab", "ab"), (#"v([0-9a-f]+)"#, "V1 v2g", "2"), (#"([0-9]+)"#, "none", nil),
            (#"x([.\-\]]+)y"#, "x.-]y", ".-]"), (#"([-a]+)z"#, "b-a-z", "-a-"),
            (#"\(([0-9]+)\)"#, "(5)", "5"),
            // Trying all ways would not end.
            (String(repeating: "[a]+", count: 25) + "(b)", String(repeating: "a", count: 250), nil),
        ] as [(String, String, String?)])
    func finds(_ row: (pattern: String, text: String, value: String?)) throws {
        #expect(try found(row.pattern, in: row.text) == row.value)
    }

    @Test(
        "what is no pattern",
        arguments: [
            "", "a", "()", "(a", "a)", "((a))", "(a)(b)", "(a|b)", "(a*)", "(a+)", "(a?)", "(.)", "([^a])",
            "([a)", "([])",
            "([b-a])", #"(\d)"#, #"(a\"#, "(a){2}", "^(a)", "(a)$", "(\u{E9})",
        ])
    func refuses(_ text: String) {
        let bytes = Array(text.utf8)
        let pattern = TextPattern(bytes.span)
        #expect(pattern == nil)
    }

    @Test("a value that may have been cut is none")
    func cut() throws {
        let before = String(repeating: "x", count: TextPattern.longestText - 3)
        #expect(try found("v([0-9]+)", in: before + "v12") == "12")
        #expect(try found("v([0-9]+)", in: before + "v123") == nil)
        #expect(try found("v([0-9]+)", in: before + "v1 3") == "1")
    }

    /// The reference: every start, every length, by trial.
    @Test("random patterns find what trying all ways finds")
    func reference() throws {
        var random = seededRandom()
        for _ in 0..<rounds(2_000) {
            let items = (0..<Int.random(in: 1...4, using: &random)).map { _ in
                (Bool.random(using: &random) ? "[ab]" : "[a]", Bool.random(using: &random) ? "+" : "")
            }
            let pattern = "(" + items.map { $0.0 + $0.1 }.joined() + ")"
            let text = String(
                (0..<Int.random(in: 0...9, using: &random)).map { _ in
                    "abc".randomElement(using: &random) ?? "a"
                })
            #expect(
                try found(pattern, in: text) == TextPatternTests.slow(items, Array(text)),
                "\(pattern) in \(text)")
        }
    }

    private static func slow(_ items: [(set: String, plus: String)], _ text: [Character]) -> String? {
        func longest(_ item: Int, _ at: Int) -> Int? {
            guard item < items.count else { return at }
            var end = at
            while end < text.count, items[item].set.contains(text[end]) { end += 1 }
            let most = items[item].plus.isEmpty ? min(end, at + 1) : end
            guard most > at else { return nil }
            for next in stride(from: most, through: at + 1, by: -1) {
                if let end = longest(item + 1, next) { return end }
            }
            return nil
        }
        for start in text.indices {
            if let end = longest(0, start) { return String(text[start..<end]) }
        }
        return nil
    }
}
