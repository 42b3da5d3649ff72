import CountersignSeal
import CountersignWire

/// The token that a client without OPAQUE sends with each request; a copy of it is enough to use the
/// session. `b_` and 43 characters of base64url: the session's id, by which the session is found, and 16
/// secret bytes. Source: docs/protocol.md, "Bearer sessions".
package struct BearerToken: Sendable {
    package let session: SessionID
    private let bytes: Secret

    /// Nil unless `text` is the canonical encoding of a token.
    package init?(_ text: Span<UInt8>) {
        guard let bytes = BearerTokenEncoding.decode(text, kind: BearerTokenEncoding.token) else {
            return nil
        }
        self.init(bytes)
    }

    init?(_ bytes: Secret) {
        guard let session = bytes.withExposedBytes({ SessionID($0.extracting(0..<SessionID.count)) }) else {
            return nil
        }
        self.session = session
        self.bytes = bytes
    }

    /// Whether a text begins like a bearer token, well formed or not.
    package static func begins(_ text: Span<UInt8>) -> Bool {
        BearerTokenEncoding.begins(text, kind: BearerTokenEncoding.token)
    }

    /// The token's text, a secret: only the answer that hands it out contains it.
    package var text: String { BearerTokenEncoding.encode(bytes, kind: BearerTokenEncoding.token) }

    /// SHA-256, the only form in which a store keeps the token.
    package var hash: [UInt8] { BearerTokenEncoding.hash(bytes) }
    package func matches(_ kept: [UInt8]) -> Bool { ConstantTime.equals(hash.span, kept.span) == .equal }
}

/// The token that obtains new tokens and does nothing else: `l_` and 43 characters of base64url. Its first
/// half stays the same while the session lives, and the session's id is a hash of that half. A login token
/// therefore finds its session after any number of renewals, and a party that knows only the id, such as
/// the backend, cannot make a login token that ends the session as reused. Sessions that the login ladder
/// opened hash under a label of their own, so that the ladder's endpoint, which needs no signature and does
/// not rotate login tokens, finds no other session.
package struct LoginToken: Sendable {
    private static let handleCount = 16

    private let bytes: Secret

    package init?(_ text: Span<UInt8>) {
        guard let bytes = BearerTokenEncoding.decode(text, kind: BearerTokenEncoding.loginToken) else {
            return nil
        }
        self.bytes = bytes
    }

    init(random: some RandomSource) {
        while true {
            let token = LoginToken(random.secret(BearerTokenEncoding.count))
            let ids = [token.session(.rotating), token.session(.keeping)]
            guard ids.contains(where: { $0?.readsAsOption == true }) else {
                self = token
                return
            }
        }
    }

    private init(_ bytes: Secret) { self.bytes = bytes }

    /// The id of the session that this login token belongs to, if that session was opened with this rule.
    package func session(_ habit: BearerRenewal.LoginTokenRule) -> SessionID? {
        let label = habit == .keeping ? "countersign/1 ladder session" : "countersign/1 bearer session"
        var hash = SHA256()
        hash.update(Array(label.utf8).span)
        bytes.withExposedBytes { hash.update($0.extracting(0..<LoginToken.handleCount)) }
        return SessionID(hash.finish().span.extracting(0..<SessionID.count))
    }

    /// The login token's text, a secret: only the answer that hands it out contains it.
    package var text: String { BearerTokenEncoding.encode(bytes, kind: BearerTokenEncoding.loginToken) }

    /// SHA-256, the only form in which a store keeps the login token.
    package var hash: [UInt8] { BearerTokenEncoding.hash(bytes) }
    package func matches(_ kept: [UInt8]) -> Bool { ConstantTime.equals(hash.span, kept.span) == .equal }

    /// Derives the session's token for an issue time in whole Unix seconds. Computing it takes this login
    /// token, the time and the key.
    func token(of session: SessionID, issued: Int64, under key: HMACSHA256) -> BearerToken? {
        let secret = derived("token", issued: issued, under: key)
        return BearerToken(Secret(joining: [Secret(copying: session.bytes.span), secret]))
    }

    /// The login token that replaces this one.
    func successor(issued: Int64, under key: HMACSHA256) -> LoginToken {
        LoginToken(
            Secret(joining: [
                bytes.part(0..<LoginToken.handleCount), derived("login token", issued: issued, under: key),
            ]))
    }

    private func derived(_ what: String, issued: Int64, under key: HMACSHA256) -> Secret {
        let time = (0..<8).map {
            UInt8(truncatingIfNeeded: UInt64(bitPattern: issued) >> UInt64(56 - 8 * $0))
        }
        // A label, a zero byte, and two parts of fixed length: different inputs give different messages.
        let label = Array("countersign/1 bearer \(what)".utf8) + [0]
        let message = Secret(joining: [Secret(copying: (label + time).span), bytes])
        var digest = message.withExposedBytes { key.authenticate($0) }
        return Secret(taking: &digest).part(0..<(BearerTokenEncoding.count - LoginToken.handleCount))
    }
}

/// The text encoding of both kinds of token.
private enum BearerTokenEncoding {
    static let count = 32
    static let token = UInt8(ascii: "b")
    static let loginToken = UInt8(ascii: "l")
    private static let length = 45

    static func begins(_ text: Span<UInt8>, kind: UInt8) -> Bool {
        text.count >= 2 && text[0] == kind && text[1] == UInt8(ascii: "_")
    }

    static func decode(_ text: Span<UInt8>, kind: UInt8) -> Secret? {
        guard text.count == length, begins(text, kind: kind),
            let bytes = Base64.decode(text.extracting(2...), as: .url)
        else { return nil }
        return Secret(copying: bytes.span)
    }

    static func encode(_ bytes: Secret, kind: UInt8) -> String {
        String(decoding: [kind, UInt8(ascii: "_")], as: UTF8.self)
            + bytes.withExposedBytes { Base64.encode($0, as: .url) }
    }

    static func hash(_ bytes: Secret) -> [UInt8] {
        let digest = bytes.withExposedBytes { SHA256.digest($0) }
        return digest.indices.map { digest[$0] }
    }
}

extension Deployment {
    /// The key that tokens of bearer sessions are derived with; created at first use. The key alone derives
    /// no token: each derivation also takes the login token, of which the store keeps only a hash.
    func bearerKey() throws(OperationalError) -> HMACSHA256 {
        var sealed = try store.value(of: .bearerKey)
        if sealed == nil {
            sealed = try store.setIfAbsent(.bearerKey, to: seal(Secret(random: 32), as: .bearerKey))
        }
        guard let key = open(sealed ?? [], as: .bearerKey) else {
            throw OperationalError(
                .failed, message: "bearer key: its sealed value does not open; the row was altered")
        }
        return key.withExposedBytes { HMACSHA256(key: $0) }
    }
}

extension SealBinding {
    static let bearerKey = SealBinding(kind: "bearer-key", row: "bearer-key")
}
