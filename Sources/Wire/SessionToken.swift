/// Identifies a session: 16 random bytes. Not a secret: knowing the id alone gives no access.
package struct SessionID: Sendable, Hashable, CustomStringConvertible {
    package static let count = 16

    private let high: UInt64
    private let low: UInt64

    /// Nil where `bytes` are not 16.
    package init?(_ bytes: Span<UInt8>) {
        guard bytes.count == SessionID.count else { return nil }
        func number(_ start: Int) -> UInt64 {
            var number: UInt64 = 0
            for index in start..<start + 8 { number = number << 8 | UInt64(bytes[index]) }
            return number
        }
        high = number(0)
        low = number(8)
    }

    /// From its text: 22 characters of base64url; one text for each id. Allocates nothing: each request of a
    /// session bears one.
    package init?(text: Span<UInt8>) {
        guard let bytes = Base64.decodeShort(text, as: .url) else { return nil }
        self.init(bytes.span)
    }

    package init?(_ text: String) {
        let bytes = Array(text.utf8)
        self.init(text: bytes.span)
    }

    /// Sixty-four of its bits, which are random: for tables.
    package var hash: UInt64 { high ^ low }

    package var bytes: [UInt8] {
        [high, low].flatMap { half in (0..<8).map { UInt8(truncatingIfNeeded: half >> UInt64(56 - 8 * $0)) } }
    }

    package var description: String { Base64.encode(bytes.span, as: .url) }

    /// Whether its text begins with `-`, so that a command line would parse it as an option: such ids are
    /// not issued.
    package var readsAsOption: Bool { high >> 58 == 62 }
}

/// The key id of a session's request: `s_`, the session's id, `.`, and the epoch of its key in decimal. The
/// prefix names its type, so that the token is not valid in any other place. Source: docs/protocol.md,
/// "Sessions".
package struct SessionToken: Sendable, Hashable, CustomStringConvertible {
    package var id: SessionID
    /// How often the session's key was renewed; 0 after the login.
    package var epoch: UInt32

    package init(id: SessionID, epoch: UInt32) {
        self.id = id
        self.epoch = epoch
    }

    private static let prefix: StaticString = "s_"
    private static let idLength = 22
    /// Bytes before the epoch: what all tokens of a session begin with, and none of another.
    package static let sessionLength = prefix.utf8CodeUnitCount + idLength

    package init?(_ text: String) {
        let bytes = Array(text.utf8)
        self.init(bytes.span)
    }

    /// Nil unless the text is the canonical form of a token.
    package init?(_ text: Span<UInt8>) {
        let start = SessionToken.prefix.utf8CodeUnitCount
        let dot = SessionToken.sessionLength
        guard text.count > dot + 1, text.count <= dot + 11, text[dot] == UInt8(ascii: "."),
            SessionToken.begins(text), let id = SessionID(text: text.extracting(start..<dot))
        else { return nil }
        var epoch: UInt32 = 0
        for index in (dot + 1)..<text.count {
            guard ASCII.isDigit(text[index]), text[dot + 1] != UInt8(ascii: "0") || text.count == dot + 2
            else {
                return nil
            }
            let (tens, first) = epoch.multipliedReportingOverflow(by: 10)
            let (sum, second) = tens.addingReportingOverflow(UInt32(text[index] - UInt8(ascii: "0")))
            guard !first, !second else { return nil }
            epoch = sum
        }
        self.init(id: id, epoch: epoch)
    }

    /// Whether a key id has the prefix of a token, well formed or not. No release's key id may have it.
    package static func begins(_ text: Span<UInt8>) -> Bool {
        text.count >= 2 && text[0] == UInt8(ascii: "s") && text[1] == UInt8(ascii: "_")
    }

    package var description: String { "\(SessionToken.prefix)\(id).\(epoch)" }
}

/// Finds the secrets of bearer sessions, `b_…` and `l_…`, in texts that must not contain them: in fields to
/// be forwarded and in lines to be written to a log. Source: docs/protocol.md, "Bearer sessions".
package enum BearerTokenScanner {
    /// The first half of a token, 22 characters, gives no access by itself; a text of at least that length
    /// may contain more.
    private static let least = 22

    /// Where the first one is, from `start` on: the whole run of characters that a token is made of. Nil
    /// where there is none.
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

    /// The same text with dots in place of the characters after `b_` or `l_`; nil if it contains no token.
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
