import CountersignWire
import Testing

/// Which language a client is answered in.
@Suite struct LanguageTagTests {
    private func found(_ field: String, among known: [String]) -> String? {
        let bytes = Array(field.utf8)
        let accepted = AcceptedLanguages(bytes.span)
        return accepted.find { known.contains($0.description) ? true : nil }?.language.description
    }

    @Test(
        "the first by weight that there is, or what it is a kind of",
        arguments: [
            ("zh", "zh"), ("zh-Hans-CN", "zh"), ("fr,zh", "zh"), ("en;q=0.5,zh;q=0.6", "zh"),
            ("EN , zh", "en"), ("en;q=0,zh;q=0.001", "zh"), ("zh-x-a", "zh"), ("en;q=1.000,zh", "en"),
            ("zh;q=1.001,en", "en"), ("zh;q=0.1234,en", "en"), ("zh;level=1,en", "en"), ("zh;q=.5,en", "en"),
            ("zh-,en", "en"), ("", nil), ("*", nil), ("fr", nil), ("zhh", nil), ("zh;q=0", nil),
        ])
    func accepted(_ row: (field: String, language: String?)) {
        #expect(found(row.field, among: ["zh", "en"]) == row.language)
    }

    @Test("at last what stands for any other")
    func anyOther() {
        #expect(found("fr", among: ["zh", "default"]) == "default")
        #expect(found("fr,zh", among: ["zh", "default"]) == "zh")
    }

    @Test("of a field, so many bytes and languages")
    func bounds() {
        let french = [String](repeating: "fr", count: 15).joined(separator: ",")
        #expect(found(french + ",zh", among: ["zh"]) == "zh")
        #expect(found(french + ",fr,zh", among: ["zh"]) == nil)
        #expect(found("zh" + String(repeating: " ", count: 510), among: ["zh"]) == "zh")
        #expect(found("zh" + String(repeating: " ", count: 511), among: ["zh"]) == nil)
    }

    @Test(
        "tags, in lower case",
        arguments: [
            ("zh", "zh"), ("pt-BR", "pt-br"), ("zh-Hans-CN", "zh-hans-cn"), ("default", "default"),
            ("a-1", "a-1"), ("", nil), ("-", nil), ("zh-", nil), ("1a", nil), ("z_h", nil),
            ("abcdefghi", nil),
            ("zh--cn", nil), ("\u{e9}", nil), ("abcdefgh-abcdefgh-abcdefgh-abcdefghi", nil),
        ])
    func tags(_ row: (text: String, tag: String?)) {
        #expect(LanguageTag(row.text)?.description == row.tag)
    }
}
