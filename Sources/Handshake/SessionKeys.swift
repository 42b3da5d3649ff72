import CountersignSeal

/// What comes of OPAQUE's session key. Source: docs/protocol.md, "Login".
package struct LoginKeys: Sendable {
    /// The client's MAC over the finish.
    package let finish: HMACSHA256
    /// Where the session begins.
    package let root: SessionRoot

    /// `sessionKey` is OPAQUE's: 64 bytes.
    package init(sessionKey: Secret) {
        let key = HKDFSHA512.expand(sessionKey, info: Array("countersign/1 finish".utf8), count: 32)
        finish = key.withExposedBytes { HMACSHA256(key: $0) }
        root = SessionRoot(
            secret: HKDFSHA512.expand(sessionKey, info: Array("countersign/1 root".utf8), count: SessionRoot.count))
    }
}

/// What a session's keys come from, in one epoch: never sent, kept in the device's vault and sealed at the authority.
package struct SessionRoot: Sendable {
    package static let count = 32

    package let secret: Secret

    /// From the vault or the store; 32 bytes.
    package init(secret: Secret) { self.secret = secret }

    /// Signs the session's requests: 32 bytes for HMAC-SHA256.
    package var requestKey: Secret {
        HKDFSHA512.expand(extracted, info: Array("countersign/1 request".utf8), count: 32)
    }

    /// The root of the next epoch: `agreed` is what the device's agreement key and the server's ephemeral one give. Without
    /// it, who copied this root cannot follow.
    package func next(agreed: Secret) -> SessionRoot {
        let key = HKDFSHA512.extract(from: [secret, agreed])
        return SessionRoot(
            secret: HKDFSHA512.expand(key, info: Array("countersign/1 ratchet".utf8), count: SessionRoot.count))
    }

    private var extracted: Secret { HKDFSHA512.extract(from: [secret]) }
}
