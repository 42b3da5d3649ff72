/// Names a session: 16 random bytes. Not a secret; who holds it can do nothing with it.
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

    /// From its text: 22 characters of base64url; one text for each id. Allocates nothing: each request of a session
    /// bears one.
    package init?(text: Span<UInt8>) {
        guard let bytes = Base64.decodeShort(text, .url) else { return nil }
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

    package var description: String { Base64.encode(bytes.span, .url) }

    /// Whether its text begins with `-`, and a command line would take it for an option: such ids are not given out.
    package var readsAsOption: Bool { high >> 58 == 62 }
}

/// What a request of a session bears as its key id: `s_`, the session's id, `.`, and the epoch of its key in decimal. Typed, so that
/// it is of no use in any other place. Source: docs/protocol.md, "Sessions".
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

    /// Nil for anything but the one spelling of a token.
    package init?(_ text: Span<UInt8>) {
        let start = SessionToken.prefix.utf8CodeUnitCount
        let dot = SessionToken.sessionLength
        guard text.count > dot + 1, text.count <= dot + 11, text[dot] == UInt8(ascii: "."),
            SessionToken.begins(text), let id = SessionID(text: text.extracting(start..<dot))
        else { return nil }
        var epoch: UInt32 = 0
        for index in (dot + 1)..<text.count {
            guard ASCII.isDigit(text[index]), text[dot + 1] != UInt8(ascii: "0") || text.count == dot + 2 else {
                return nil
            }
            let (tens, first) = epoch.multipliedReportingOverflow(by: 10)
            let (sum, second) = tens.addingReportingOverflow(UInt32(text[index] - UInt8(ascii: "0")))
            guard !first, !second else { return nil }
            epoch = sum
        }
        self.init(id: id, epoch: epoch)
    }

    /// Whether a key id says of itself that it is a token, well formed or not. No release's key id may.
    package static func begins(_ text: Span<UInt8>) -> Bool {
        text.count >= 2 && text[0] == UInt8(ascii: "s") && text[1] == UInt8(ascii: "_")
    }

    package var description: String { "\(SessionToken.prefix)\(id).\(epoch)" }
}
