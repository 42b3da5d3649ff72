import CountersignWire

/// Key ids as `keyid` carries them: a string, in which `"` and `\` have a `\` before them. An id may hold both.
/// Source: RFC 9651 §3.3.3.
extension KeyID {
    /// What stands between the quotes; nil where it stands for no key id.
    init?(quoted text: borrowing Span<UInt8>) {
        let escape = UInt8(ascii: "\\")
        guard text.firstIndex(of: escape, from: 0) != nil else {
            self.init(text)
            return
        }
        var plain = Bytes64()
        var count = 0
        var index = 0
        while index < text.count {
            if text[index] == escape { index += 1 }
            guard index < text.count, count < KeyID.longest else { return nil }
            plain[count] = text[index]
            count += 1
            index += 1
        }
        self.init(plain.span.extracting(0..<count))
    }

    /// To stand between the quotes.
    var quotable: String {
        let text = description
        func isSpecial(_ byte: UInt8) -> Bool { byte == UInt8(ascii: "\\") || byte == UInt8(ascii: "\"") }
        guard text.utf8.contains(where: isSpecial) else { return text }
        return String(
            decoding: text.utf8.flatMap { isSpecial($0) ? [UInt8(ascii: "\\"), $0] : [$0] }, as: UTF8.self)
    }
}
