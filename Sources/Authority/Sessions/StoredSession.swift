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
    /// What it is called to people, and counted as in slots.
    package var deviceClass: Device.Class
    package var deviceName: String
    /// Whole Unix seconds.
    package var created: Int64
    /// The last login or refresh, whole Unix seconds: idle time counts from here.
    package var used: Int64
    package var credentials: Credentials
    /// The release that it was last signed in or renewed under: between renewals the version is only claimed. Nil where that was
    /// before this was kept, and for logins and renewals that no release signed.
    package var release: KeyID?
    /// Whether its token may come without a signature.
    package var opening = Session.Opening.signed
    /// Where its device says that it keeps its keys; nil where it did not say, and for sessions without a
    /// device's key.
    package var keyStorage: KeyStorage?
    package var end: SessionEnd?
    /// Goes up with each change of any session: what changed after a number that is remembered is what is new.
    package var change: Int64 = 0

    package init(
        id: SessionID, account: Int64, app: AppName, platform: Platform, deviceClass: Device.Class, deviceName: String,
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

    /// What its requests are proved by.
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
    /// When this epoch's token began: at the login, or when it was first used. Whole Unix seconds.
    package var epochBegan: Int64
    /// The root of `epoch`, under the master key, bound to session and epoch.
    package var sealedRoot: [UInt8]
    /// The root before it, whose requests are let in for 30 s after `epochBegan`, and known for longer.
    package var sealedPreviousRoot: [UInt8]?
    /// The attempts that led to `epoch`: a repeated one is harmless, any other is a reuse.
    package var attempts: [[UInt8]] = []
    /// The epoch that was offered and not used yet.
    package var successor: Successor?

    package struct Successor: Sendable, Equatable {
        /// Sealed like ``DeviceCredentials/sealedRoot``, for the next epoch.
        package var sealedRoot: [UInt8]
        /// The server's ephemeral public half, 65 bytes: told again to whoever asks again.
        package var ephemeral: [UInt8]
        /// At most ``mostAttempts``.
        package var attempts: [[UInt8]]

        package static let mostAttempts = 8

        package init(sealedRoot: [UInt8], ephemeral: [UInt8], attempts: [[UInt8]]) {
            self.sealedRoot = sealedRoot
            self.ephemeral = ephemeral
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

/// A session of tokens that are sent: only their SHA-256 is kept.
package struct BearerCredentials: Sendable, Equatable {
    package var tokenHash: [UInt8]
    /// Whole Unix seconds.
    package var tokenExpires: Int64
    /// When the tokens were made, whole Unix seconds: who asks for them once more at once gets the same.
    package var issued: Int64
    /// The token before, so that its holder is told that it ran out, and not that it never was.
    package var previousTokenHash: [UInt8]?
    /// Gets new tokens and does nothing else.
    package var loginTokenHash: [UInt8]
    /// The login token before, for as long as nobody has used what took its place: the answer may have been lost.
    package var previousLoginTokenHash: [UInt8]?

    package init(tokenHash: [UInt8], tokenExpires: Int64, issued: Int64, loginTokenHash: [UInt8]) {
        self.tokenHash = tokenHash
        self.tokenExpires = tokenExpires
        self.issued = issued
        self.loginTokenHash = loginTokenHash
    }
}
