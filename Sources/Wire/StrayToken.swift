/// Finds the secrets of bearer sessions, `b_…` and `l_…`, in texts where they have no business: in fields that would be
/// forwarded, in lines that would be written to a log. Source: docs/protocol.md, "Bearer sessions".
package enum StrayToken {
    /// The first half of a token, 22 characters, opens nothing by itself; what is as long or longer may hold more.
    private static let least = 22

    /// Where the first one is, from `start` on: the whole run of characters that a token is made of. Nil where there is none.
    package static func find(in text: borrowing Span<UInt8>, from start: Int = 0) -> Range<Int>? {
        var from = max(start, 1)
        while let mark = text.firstIndex(of: UInt8(ascii: "_"), from: from) {
            from = mark + 1
            let begin = mark - 1
            guard text[begin] == UInt8(ascii: "b") || text[begin] == UInt8(ascii: "l"),
                begin == 0 || !isOfToken(text[begin - 1])
            else { continue }
            var end = from
            while end < text.count, isOfToken(text[end]) { end += 1 }
            if end - from >= least { return begin..<end }
        }
        return nil
    }

    /// The same text with dots in the place of what follows `b_` or `l_`; nil where it has none.
    package static func redacted(_ text: borrowing Span<UInt8>) -> [UInt8]? {
        guard var place = find(in: text) else { return nil }
        var kept: [UInt8] = []
        var start = 0
        while true {
            kept.append(contentsOf: (start..<place.lowerBound + 2).map { text[$0] })
            kept.append(contentsOf: "…".utf8)
            start = place.upperBound
            guard let next = find(in: text, from: start) else { break }
            place = next
        }
        kept.append(contentsOf: (start..<text.count).map { text[$0] })
        return kept
    }

    /// A digit of base64url.
    private static func isOfToken(_ byte: UInt8) -> Bool {
        ASCII.isLetter(byte) || ASCII.isDigit(byte) || byte == UInt8(ascii: "-") || byte == UInt8(ascii: "_")
    }
}
