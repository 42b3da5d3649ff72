import CountersignOpaque
import CountersignSeal
import CountersignWire

/// The values besides the password that a login is bound to: account, app, release and device. A login
/// fails if one of them is replaced in transit. Source: docs/protocol.md, "Login".
package struct LoginBinding: Sendable {
    package let app: String
    package let account: AccountName
    /// The release's key id.
    package let release: String
    package let device: Device

    package init(app: String, account: AccountName, release: String, device: Device) {
        self.app = app
        self.account = account
        self.release = release
        self.device = device
    }

    /// The party names of OPAQUE: the client is the account, the server is the app. Nil if one is empty.
    package var parties: Parties? { LoginBinding.parties(app: app, account: account) }

    package static func parties(app: String, account: AccountName) -> Parties? {
        guard let client = PartyIdentity.Name(account.bytes), let server = PartyIdentity.Name(Array(app.utf8))
        else { return nil }
        return Parties(client: .name(client), server: .name(server))
    }

    /// OPAQUE's context: `countersign/1` and the SHA-256 of release and device.
    package var context: LoginContext? { LoginContext(Array("countersign/1".utf8) + digest) }

    private var digest: [UInt8] {
        var transcript = Transcript("login context")
        transcript.add(release)
        transcript.add(device.signingKey.bytes)
        transcript.add(device.agreementKey.bytes)
        transcript.add(device.kind.rawValue)
        transcript.add(device.name.description)
        let digest = SHA256.digest(transcript.bytes.span)
        return digest.indices.map { digest[$0] }
    }

    /// The bytes that a known device signs at the start of a login, so that the login counts against the
    /// device's own limit and not that of unknown callers. `time` is in whole Unix seconds; the server
    /// accepts each start once.
    package func startProof(ke1: [UInt8], time: Int64) -> [UInt8] {
        var transcript = Transcript("known device")
        transcript.add(app)
        transcript.add(account.bytes)
        transcript.add(ke1)
        transcript.add(digest)
        transcript.add(UInt64(bitPattern: time))
        return transcript.bytes
    }

    /// The bytes that the device signs, and the client authenticates under ``LoginKeys/finish``, to finish.
    /// `purpose` is the reason why the password is proved; `more` are the values that it binds besides.
    package func finishTranscript(
        _ purpose: Purpose, loginID: [UInt8], ke1: [UInt8], ke2: [UInt8], ke3: [UInt8], more: [[UInt8]] = []
    ) -> [UInt8] {
        var transcript = Transcript(purpose.rawValue)
        transcript.add(app)
        transcript.add(account.bytes)
        transcript.add(digest)
        for part in [loginID, ke1, ke2, ke3] + more { transcript.add(part) }
        // Last, and only if both sides know the value.
        if purpose == .login, let storage = device.keyStorage { transcript.add(storage.rawValue) }
        return transcript.bytes
    }

    /// The reason why a password is proved.
    package enum Purpose: String, Sendable {
        case login
        case passwordChange = "password change"
    }
}

/// The keys derived from OPAQUE's session key. Source: docs/protocol.md, "Login".
package struct LoginKeys: Sendable {
    /// Authenticates the client's finish.
    package let finish: HMACSHA256
    /// The root of the session's first epoch.
    package let root: SessionRoot

    /// `sessionKey` is OPAQUE's session key: 64 bytes.
    package init(sessionKey: Secret) {
        let key = HKDFSHA512.expand(sessionKey, info: Array("countersign/1 finish".utf8), count: 32)
        finish = key.withExposedBytes { HMACSHA256(key: $0) }
        root = SessionRoot(
            secret: HKDFSHA512.expand(
                sessionKey, info: Array("countersign/1 root".utf8), count: SessionRoot.count))
    }
}

/// The secret that a session's keys are derived from in one epoch: it is never sent; the device keeps it in
/// its vault, and the authority keeps it sealed.
package struct SessionRoot: Sendable {
    package static let count = 32

    package let secret: Secret

    /// From the vault or the store; 32 bytes.
    package init(secret: Secret) { self.secret = secret }

    /// The key that signs the session's requests: 32 bytes for HMAC-SHA256.
    package var requestKey: Secret {
        HKDFSHA512.expand(extracted, info: Array("countersign/1 request".utf8), count: 32)
    }

    /// The root of the next epoch. `agreed` is the shared secret of the device's agreement key and the
    /// server's ephemeral key; without it, a copy of this root does not give the next one.
    package func next(agreed: Secret) -> SessionRoot {
        let key = HKDFSHA512.extract(from: [secret, agreed])
        return SessionRoot(
            secret: HKDFSHA512.expand(
                key, info: Array("countersign/1 ratchet".utf8), count: SessionRoot.count))
    }

    private var extracted: Secret { HKDFSHA512.extract(from: [secret]) }
}
