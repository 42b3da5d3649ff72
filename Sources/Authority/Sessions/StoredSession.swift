import CountersignGate
import CountersignHandshake
import CountersignSchemes
import CountersignSeal
import CountersignWire

/// A session as a store keeps it: from one login to its end, through all of its epochs.
package struct StoredSession: Sendable, Equatable {
    package var id: SessionID
    package var account: Int64
    package var app: AppName
    package var platform: Platform
    /// The kind of device that users see, and that slot rules count.
    package var deviceClass: Device.Class
    package var deviceName: String
    /// Whole Unix seconds.
    package var created: Int64
    /// The last login or refresh, whole Unix seconds: idle time counts from here.
    package var used: Int64
    package var credentials: Credentials
    /// The release that last opened or renewed the session; between renewals the version is only claimed.
    /// Nil for logins and renewals that no release signed.
    package var release: KeyID?
    /// Whether its token may come without a signature.
    package var opening = Session.LoginKind.signed
    /// Where the device says that it keeps its keys; nil if it did not say, and for sessions without a
    /// device key.
    package var keyStorage: KeyStorage?
    package var end: SessionTermination?
    /// Increases with each change of any session: rows above a remembered number are those that changed
    /// since.
    package var change: Int64 = 0

    package init(
        id: SessionID, account: Int64, app: AppName, platform: Platform, deviceClass: Device.Class,
        deviceName: String,
        created: Int64, credentials: Credentials
    ) {
        self.id = id
        self.account = account
        self.app = app
        self.platform = platform
        self.deviceClass = deviceClass
        self.deviceName = deviceName
        self.created = created
        self.used = created
        self.credentials = credentials
    }

    /// The credentials that verify its requests.
    package enum Credentials: Sendable, Equatable {
        case device(DeviceCredentials)
        case bearer(BearerCredentials)
    }
}

/// A device-bound session: its ratchet, and the device's public keys.
package struct DeviceCredentials: Sendable, Equatable {
    /// 65 bytes each, on P-256.
    package var signingKey: [UInt8]
    package var agreementKey: [UInt8]
    package var epoch: UInt32 = 0
    /// When this epoch's token lifetime began: at the login, or at its first use. Whole Unix seconds.
    package var epochBegan: Int64
    /// The root of `epoch`, sealed under the master key and bound to session and epoch.
    package var sealedRoot: [UInt8]
    /// The previous epoch's root. Its requests are accepted for 30 s after `epochBegan`, and recognised for
    /// longer.
    package var sealedPreviousRoot: [UInt8]?
    /// The release whose login or refresh made `epoch`, and the one of the epoch before. An epoch without one
    /// has no key that the gate accepts.
    package var release: KeyID?
    package var previousRelease: KeyID?
    /// The attempt that led to `epoch`; none for the login's.
    package var attempts: [[UInt8]] = []
    /// The highest counter of a transcript that verified; 0 before the first refresh.
    package var counter: Int64 = 0
    /// SHA-256 of that transcript.
    package var counterDigest: [UInt8]?
    /// The epoch that was offered and not used yet.
    package var successor: Successor?

    package struct Successor: Sendable, Equatable {
        /// Sealed like ``DeviceCredentials/sealedRoot``, for the next epoch.
        package var sealedRoot: [UInt8]
        /// The server's ephemeral public key, 65 bytes, kept to answer a repeated request alike.
        package var ephemeral: [UInt8]
        /// The release whose refresh asked for it last.
        package var release: KeyID?
        /// The attempt that asked for it.
        package var attempts: [[UInt8]]

        package init(
            sealedRoot: [UInt8], ephemeral: [UInt8], release: KeyID? = nil, attempts: [[UInt8]]
        ) {
            self.sealedRoot = sealedRoot
            self.ephemeral = ephemeral
            self.release = release
            self.attempts = attempts
        }
    }

    package init(signingKey: [UInt8], agreementKey: [UInt8], epochBegan: Int64, sealedRoot: [UInt8]) {
        self.signingKey = signingKey
        self.agreementKey = agreementKey
        self.epochBegan = epochBegan
        self.sealedRoot = sealedRoot
    }
}

/// A bearer session: the store keeps only the SHA-256 of its tokens.
package struct BearerCredentials: Sendable, Equatable {
    package var tokenHash: [UInt8]
    /// Whole Unix seconds.
    package var tokenExpires: Int64
    /// When the tokens were issued, whole Unix seconds. A renewal that is repeated at once gets the same
    /// tokens.
    package var issued: Int64
    /// The previous token, so that its holder is told that it expired and not that it is unknown.
    package var previousTokenHash: [UInt8]?
    /// The token that obtains new tokens and does nothing else.
    package var loginTokenHash: [UInt8]
    /// The previous login token, until the new token is used: the answer may have been lost.
    package var previousLoginTokenHash: [UInt8]?

    package init(tokenHash: [UInt8], tokenExpires: Int64, issued: Int64, loginTokenHash: [UInt8]) {
        self.tokenHash = tokenHash
        self.tokenExpires = tokenExpires
        self.issued = issued
        self.loginTokenHash = loginTokenHash
    }
}

/// Seals the roots of sessions for the store, and opens them.
package protocol SessionRootSealer: Sendable {
    func seal(_ root: SessionRoot, as binding: SealBinding, under keys: MasterKeyRing) -> [UInt8]
    /// Nil where `sealed` was not sealed as that.
    func open(_ sealed: [UInt8], as binding: SealBinding, under keys: MasterKeyRing) -> Secret?
}

/// Seals them under the master key.
package struct MasterKeyRootSealer: SessionRootSealer {
    package init() {}

    package func seal(_ root: SessionRoot, as binding: SealBinding, under keys: MasterKeyRing) -> [UInt8] {
        keys.seal(root.secret, as: binding, random: SystemRandom())
    }

    package func open(_ sealed: [UInt8], as binding: SealBinding, under keys: MasterKeyRing) -> Secret? {
        try? keys.open(sealed, as: binding)
    }
}

/// Seals session roots under the master key, each bound to its session and epoch: a row that was moved, or
/// restored from an earlier epoch, does not open.
extension Deployment {
    package func seal(_ root: SessionRoot, of session: SessionID, in app: AppName, epoch: UInt32) -> [UInt8] {
        rootSealer.seal(root, as: .root(of: session, in: app, epoch: epoch), under: masterKey)
    }

    /// Throws if the value was not sealed for this session and epoch; only this session is then
    /// unavailable.
    func root(_ sealed: [UInt8], of session: SessionID, in app: AppName, epoch: UInt32)
        throws(OperationalError) -> SessionRoot
    {
        guard
            let secret = rootSealer.open(
                sealed, as: .root(of: session, in: app, epoch: epoch), under: masterKey),
            secret.count == SessionRoot.count
        else {
            throw OperationalError(
                .failed,
                message: "session \(session): its sealed root does not open; the row was altered or moved")
        }
        return SessionRoot(secret: secret)
    }
}

extension SealBinding {
    fileprivate static func root(of session: SessionID, in app: AppName, epoch: UInt32) -> SealBinding {
        root(of: session, app: app.description, epoch: UInt64(epoch))
    }

    static func root(of session: SessionID, app: String, epoch: UInt64) -> SealBinding {
        SealBinding(kind: "session-root", app: app, row: session.description, epoch: epoch)
    }
}

extension SlotRule {
    /// Live sessions that an account has at most, under any rule: repeated logins must not make each read
    /// of the account arbitrarily large.
    package static let mostLive = 1_000
    /// Ended sessions of an account that are retained, so that their holders learn why they ended. A new
    /// session deletes the others.
    package static let mostEnded = 50

    /// Whether a new session ends none of `count` live ones, whichever they are.
    package func hasRoom(beside count: Int) -> Bool { count == 0 || count < (most ?? 0) }

    /// Which of an account's live sessions a new one displaces. Source: docs/protocol.md, "Slots".
    package func displaced(by new: StoredSession, among live: [StoredSession]) -> [StoredSession] {
        switch self {
        case .single: live
        case .perPlatform: live.filter { $0.platform == new.platform }
        case .perDeviceClass: live.filter { $0.deviceClass == new.deviceClass }
        case .limit, .unlimited: SlotRule.oldest(of: live, leaving: (most ?? 1) - 1)
        }
    }

    /// Nil for rules that are not about numbers.
    private var most: Int? {
        switch self {
        case .single, .perPlatform, .perDeviceClass: nil
        case .limit(let most): min(max(most, 1), SlotRule.mostLive)
        case .unlimited: SlotRule.mostLive
        }
    }

    private static func oldest(of live: [StoredSession], leaving room: Int) -> [StoredSession] {
        // Of two logins within a second, the one that was written first is the older.
        let byAge = live.sorted { ($0.created, $0.change) < ($1.created, $1.change) }
        return Array(byAge.prefix(max(byAge.count - room, 0)))
    }
}
