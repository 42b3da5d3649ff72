import CountersignSeal
import CountersignWire

/// What a client without OPAQUE sends with each request; who sees it can use it. `b_` and 43 characters of base64url: the
/// session's id, which says where to look, and 16 bytes that nobody guesses. Source: docs/protocol.md, "Bearer sessions".
package struct BearerToken: Sendable {
    package let session: SessionID
    private let bytes: Secret

    /// Nil for anything but the one spelling of a token.
    package init?(_ text: Span<UInt8>) {
        guard let bytes = BearerText.bytes(text, BearerText.token) else { return nil }
        self.init(bytes)
    }

    init?(_ bytes: Secret) {
        guard let session = bytes.withExposedBytes({ SessionID($0.extracting(0..<SessionID.count)) }) else {
            return nil
        }
        self.session = session
        self.bytes = bytes
    }

    /// Whether a text says of itself that it is such a token, well formed or not.
    package static func begins(_ text: Span<UInt8>) -> Bool { BearerText.begins(text, BearerText.token) }

    /// As it is sent: a secret, for the one answer that hands it out.
    package var text: String { BearerText.text(bytes, BearerText.token) }

    /// SHA-256: all that is kept of it.
    package var hash: [UInt8] { BearerText.hash(bytes) }
    package func matches(_ kept: [UInt8]) -> Bool { ConstantTime.equals(hash.span, kept.span) == .equal }
}

/// What gets new tokens, and does nothing else: `l_` and 43 characters of base64url. Its first half stays the same for as long as
/// the session lives, and the session's id is its hash: so a login token finds its session long after it was renewed, and
/// who has seen the id, as the backend has, cannot make one that would end the session as a reuse. What the ladder opened has ids
/// of its own, so that the ladder's route, which neither needs a signature nor turns a login token over, finds no other session.
package struct LoginToken: Sendable {
    private static let handleCount = 16

    private let bytes: Secret

    package init?(_ text: Span<UInt8>) {
        guard let bytes = BearerText.bytes(text, BearerText.loginToken) else { return nil }
        self.bytes = bytes
    }

    init(random: some RandomSource) {
        while true {
            let token = LoginToken(random.secret(BearerText.count))
            let ids = [token.session(.rotating), token.session(.keeping)]
            guard ids.contains(where: { $0?.readsAsOption == true }) else {
                self = token
                return
            }
        }
    }

    private init(_ bytes: Secret) { self.bytes = bytes }

    /// The session that it is the login token of, if that was opened to be renewed in this way.
    package func session(_ habit: BearerRenewal.Habit) -> SessionID? {
        let label = habit == .keeping ? "countersign/1 ladder session" : "countersign/1 bearer session"
        var hash = SHA256()
        hash.update(Array(label.utf8).span)
        bytes.withExposedBytes { hash.update($0.extracting(0..<LoginToken.handleCount)) }
        return SessionID(hash.finish().span.extracting(0..<SessionID.count))
    }

    /// A secret, for the one answer that hands it out.
    package var text: String { BearerText.text(bytes, BearerText.loginToken) }

    /// SHA-256: all that is kept of it.
    package var hash: [UInt8] { BearerText.hash(bytes) }
    package func matches(_ kept: [UInt8]) -> Bool { ConstantTime.equals(hash.span, kept.span) == .equal }

    /// The token of its session that belongs to it and to that time (whole Unix seconds). Nobody has one without the other and the
    /// key.
    func token(of session: SessionID, issued: Int64, under key: HMACSHA256) -> BearerToken? {
        let secret = derived("token", issued, under: key)
        return BearerToken(Secret(joining: [Secret(copying: session.bytes.span), secret]))
    }

    /// The login token that takes its place.
    func successor(issued: Int64, under key: HMACSHA256) -> LoginToken {
        LoginToken(
            Secret(joining: [bytes.part(0..<LoginToken.handleCount), derived("login token", issued, under: key)]))
    }

    private func derived(_ what: String, _ issued: Int64, under key: HMACSHA256) -> Secret {
        let time = (0..<8).map { UInt8(truncatingIfNeeded: UInt64(bitPattern: issued) >> UInt64(56 - 8 * $0)) }
        // Label, a zero, and two parts of fixed length: no two messages are spelled alike.
        let label = Array("countersign/1 bearer \(what)".utf8) + [0]
        let message = Secret(joining: [Secret(copying: (label + time).span), bytes])
        var digest = message.withExposedBytes { key.authenticate($0) }
        return Secret(taking: &digest).part(0..<(BearerText.count - LoginToken.handleCount))
    }
}

/// How both kinds are written.
private enum BearerText {
    static let count = 32
    static let token = UInt8(ascii: "b")
    static let loginToken = UInt8(ascii: "l")
    private static let length = 45

    static func begins(_ text: Span<UInt8>, _ kind: UInt8) -> Bool {
        text.count >= 2 && text[0] == kind && text[1] == UInt8(ascii: "_")
    }

    static func bytes(_ text: Span<UInt8>, _ kind: UInt8) -> Secret? {
        guard text.count == length, begins(text, kind), let bytes = Base64.decode(text.extracting(2...), .url)
        else { return nil }
        return Secret(copying: bytes.span)
    }

    static func text(_ bytes: Secret, _ kind: UInt8) -> String {
        String(decoding: [kind, UInt8(ascii: "_")], as: UTF8.self) + bytes.withExposedBytes { Base64.encode($0, .url) }
    }

    static func hash(_ bytes: Secret) -> [UInt8] {
        let digest = bytes.withExposedBytes { SHA256.digest($0) }
        return digest.indices.map { digest[$0] }
    }
}
