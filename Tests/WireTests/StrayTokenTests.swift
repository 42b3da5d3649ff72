import CountersignWire
import Testing

@Suite struct StrayTokenTests {
    private static let secret = "AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8"

    @Test(
        "what is a token, or most of one, is not shown",
        arguments: [
            ("keyid b_\(secret): no such key", "keyid b_…: no such key"), ("l_\(secret)", "l_…"),
            ("/a/b_\(secret)/l_\(secret)x/c", "/a/b_…/l_…/c"), ("b_\(secret.prefix(22))", "b_…"),
            ("Basic=b_\(secret)", "Basic=b_…"), ("_b__l_\(secret) b_\(secret)", "_b__l_\(secret) b_…"),
        ])
    func redacted(_ row: (text: String, shown: String)) {
        let bytes = Array(row.text.utf8)
        #expect(
            BearerTokenScanner.redacted(bytes.span).map { String(decoding: $0, as: UTF8.self) } == row.shown)
    }

    @Test(
        "and all else is",
        arguments: [
            "", "_", "b_", "l_short", "b_\(secret.prefix(21))", "r_\(secret)", "total_\(secret)",
            "s_\(secret).0",
        ])
    func kept(_ text: String) {
        let bytes = Array(text.utf8)
        #expect(BearerTokenScanner.redacted(bytes.span) == nil)
    }
}
