import CountersignOpaque
import CountersignSeal
import CountersignWire

/// What a login is bound to beyond the password: which account, of which app, from which release, by which device. Whoever
/// swaps one of them on the way gets a login that fails. Source: docs/protocol.md, "Login".
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

    /// The names in OPAQUE: the client is the account, the server is the app. Nil where one is empty.
    package var parties: Parties? { LoginBinding.parties(app: app, account: account) }

    package static func parties(app: String, account: AccountName) -> Parties? {
        guard let client = Identity.Name(account.bytes), let server = Identity.Name(Array(app.utf8)) else { return nil }
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

    /// What a device signs so that a login's start counts against its own allowance and no stranger's. `time` is whole Unix
    /// seconds; the server takes each signature once.
    package func startProof(ke1: [UInt8], time: Int64) -> [UInt8] {
        var transcript = Transcript("known device")
        transcript.add(app)
        transcript.add(account.bytes)
        transcript.add(ke1)
        transcript.add(digest)
        transcript.add(UInt64(bitPattern: time))
        return transcript.bytes
    }

    /// What the device signs, and the client authenticates under ``LoginKeys/finish``, to finish: `purpose` is `login`,
    /// or what else the proof of the password is for, with what that binds besides in `more`.
    package func finishTranscript(
        _ purpose: Purpose, loginID: [UInt8], ke1: [UInt8], ke2: [UInt8], ke3: [UInt8], more: [[UInt8]] = []
    ) -> [UInt8] {
        var transcript = Transcript(purpose.rawValue)
        transcript.add(app)
        transcript.add(account.bytes)
        transcript.add(digest)
        for part in [loginID, ke1, ke2, ke3] + more { transcript.add(part) }
        // Last, and only where both ends know of it: older ends compute the transcript without it.
        if purpose == .login, let storage = device.keyStorage { transcript.add(storage.rawValue) }
        return transcript.bytes
    }

    /// What a password is proved for.
    package enum Purpose: String, Sendable {
        case login
        case passwordChange = "password change"
    }
}
