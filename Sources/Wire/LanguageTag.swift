/// The name of a language as texts are kept under it and clients ask for it, in lower case: subtags of
/// letters and digits, joined by `-`. Source: RFC 5646 §2.1 for its form, which is all that is checked.
package struct LanguageTag: Sendable, Hashable, CustomStringConvertible {
    /// Bytes; RFC 5646 §4.4.1 asks for 35 at the least.
    package static let longest = 35
    /// Stands for every language without a text.
    package static let anyOther = LanguageTag(known: "default")

    package let description: String

    package init?(_ text: String) {
        let bytes = text.utf8.map(ASCII.lowercased)
        guard (1...LanguageTag.longest).contains(bytes.count) else { return nil }
        let subtags = bytes.split(separator: UInt8(ascii: "-"), omittingEmptySubsequences: false)
        let areGood = subtags.allSatisfy { subtag in
            (1...8).contains(subtag.count) && subtag.allSatisfy { ASCII.isLetter($0) || ASCII.isDigit($0) }
        }
        guard areGood, subtags[0].allSatisfy(ASCII.isLetter) else { return nil }
        description = String(decoding: bytes, as: UTF8.self)
    }

    private init(known text: String) { description = text }

    /// Without its last subtag, and without a single letter that then stands last; nil for a language alone.
    /// Source: RFC 4647 §3.4.
    package var broader: LanguageTag? {
        var subtags = description.split(separator: "-")
        subtags.removeLast()
        if let last = subtags.last, last.count == 1 { subtags.removeLast() }
        return subtags.isEmpty ? nil : LanguageTag(known: subtags.joined(separator: "-"))
    }
}

/// The languages that a client asks for, best first. Source: RFC 9110 §12.5.4.
package struct AcceptedLanguages: Sendable, Equatable {
    /// Bytes of a field beyond which it is not read, and languages beyond which no more are.
    private static let longestField = 512
    private static let most = 16

    package let tags: [LanguageTag]

    /// `Accept-Language: zh-CN,zh;q=0.9,en;q=0.8`. Members that are none are passed over, and so are `*` and
    /// what has a weight of 0.
    package init(_ field: Span<UInt8>) {
        guard field.count <= AcceptedLanguages.longestField else {
            tags = []
            return
        }
        var found: [(tag: LanguageTag, weight: Int)] = []
        for member in field.text.split(separator: ",").prefix(AcceptedLanguages.most) {
            guard let member = WeightedMember(member), member.parameters.isEmpty,
                let tag = LanguageTag(member.value)
            else { continue }
            if member.weight > 0 { found.append((tag, member.weight)) }
        }
        // By weight, and as they came where that is the same.
        tags = found.enumerated()
            .sorted { ($1.element.weight, $0.offset) < ($0.element.weight, $1.offset) }
            .map { $0.element.tag }
    }

    /// For requests that name no language.
    package init() { tags = [] }

    /// The first text that there is: in each language, in those that it is a kind of, and at last in what
    /// stands for any other.
    package func find<Text>(_ text: (LanguageTag) -> Text?) -> (language: LanguageTag, text: Text)? {
        for tag in tags {
            var candidate: LanguageTag? = tag
            while let language = candidate {
                if let found = text(language) { return (language, found) }
                candidate = language.broader
            }
        }
        return text(.anyOther).map { (.anyOther, $0) }
    }
}
