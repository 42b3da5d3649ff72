import CountersignWire
import Testing

@Suite struct VisibleTextTests {
    @Test(
        "what a terminal would obey is written out",
        arguments: [
            ("plain, é, 漢, 🙂\n\tx", "plain, é, 漢, 🙂\n\tx"), ("\u{1B}[2Jx", "\\u001b[2Jx"),
            ("\u{1B}]0;title\u{7}", "\\u001b]0;title\\u0007"), ("a\rb", "a\\u000db"),
            ("\u{7F}\u{8}\0", "\\u007f\\u0008\\u0000"), ("\u{9B}31m\u{85}", "\\u009b31m\\u0085"),
            ("a\u{202E}b\u{2066}c\u{200F}", "a\\u202eb\\u2066c\\u200f"), ("\u{61C}", "\\u061c"),
        ])
    func texts(_ row: (text: String, visible: String)) {
        #expect(VisibleText.of(row.text) == row.visible)
    }

    @Test(
        "the same of bytes, however they are cut",
        arguments: [
            (Array("HTTP/1.1 200 OK\r\nA: b\u{1B}c\r\n\r\n".utf8), "HTTP/1.1 200 OK\r\nA: b\\u001bc\r\n\r\n"),
            (Array("é漢🙂\u{9B}\u{202E}\r".utf8), "é漢🙂\\u009b\\u202e\\x0d"),
            ([0x61, 0x9B, 0x33, 0xFF, 0xE2, 0x80, 0x41, 0xE2, 0x80], "a\\x9b3\\xff\\xe2\\x80A\\xe2\\x80"),
            ([0xF0, 0x9F, 0x1B, 0x5B], "\\xf0\\x9f\\u001b["),
        ])
    func pieces(_ row: (bytes: [UInt8], visible: String)) {
        for length in 1...row.bytes.count {
            var text = VisibleText()
            var shown: [UInt8] = []
            for start in stride(from: 0, to: row.bytes.count, by: length) {
                shown += text.take(Array(row.bytes[start..<min(start + length, row.bytes.count)]))
            }
            shown += text.finish()
            #expect(String(decoding: shown, as: UTF8.self) == row.visible, "in pieces of \(length)")
        }
    }
}
