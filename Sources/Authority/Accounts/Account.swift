import CountersignGate
import CountersignWire

/// A person's identity in one app.
package struct Account: Sendable, Equatable {
    package enum State: String, Sendable, CaseIterable {
        case active
        case locked
        /// The account was removed. Its name stays reserved, because the backend would take a new
        /// account of that name for the old one.
        case removed
    }

    /// The row's number; it is never reused for another account.
    package var number: Int64
    package var app: AppName
    package var name: AccountName
    /// The user id that the backend gave; nil if it gave none.
    package var userID: Int64?
    /// Whole Unix seconds.
    package var created: Int64
    package var state = State.active
    /// The OPAQUE registration; nil for an account that has not registered yet.
    package var registration: StoredRegistration?
    /// The credential of the account's rung of the login ladder. An account with a `registration` has none.
    package var legacy: LegacyCredential?
    /// The hash of a one-time code that replaces a forgotten password, and its expiry.
    package var reset: StoredReset?
    /// How the audit log names the account; nil once the account was erased.
    package var pseudonym: AccountPseudonym?
    /// Whether the account was erased: its data are gone, and its name is a placeholder.
    package var isErased: Bool { pseudonym == nil }

    package init(number: Int64, app: AppName, name: AccountName, userID: Int64? = nil, created: Int64) {
        self.number = number
        self.app = app
        self.name = name
        self.userID = userID
        self.created = created
    }

    /// Whether the account still has the credential that a login proved: the name of its registration's
    /// credential, or the sealed value of its rung. Nil stands for any rung.
    package func isProved(by credential: [UInt8]?) -> Bool {
        guard let credential else { return registration == nil && legacy != nil }
        return registration?.credential == credential || legacy?.sealed == credential
    }
}

/// An OPAQUE registration as a store keeps it.
package struct StoredRegistration: Sendable, Equatable {
    /// Bytes of a credential's name.
    package static let credentialCount = 16

    /// Names the OPRF key: random, and new with each registration, so that a client that starts another
    /// registration under a name learns nothing about the password of the existing one.
    package var credential: [UInt8]
    /// OPAQUE's record, sealed under the master key.
    package var sealedRecord: [UInt8]

    package init(credential: [UInt8], sealedRecord: [UInt8]) {
        self.credential = credential
        self.sealedRecord = sealedRecord
    }
}

package struct StoredReset: Sendable, Equatable {
    /// SHA-256 of the code.
    package var codeHash: [UInt8]
    /// Whole Unix seconds from which the code is refused.
    package var until: Int64

    package init(codeHash: [UInt8], until: Int64) {
        self.codeHash = codeHash
        self.until = until
    }
}

extension AccountIdentity {
    /// Writes all of the name but visible ASCII, and `%`, as %XX.
    package init(_ account: Account) {
        let bytes = account.name.bytes
        var text = ByteBuffer(capacity: bytes.count * 3)
        for byte in bytes {
            if byte > 0x20 && byte < 0x7F && byte != UInt8(ascii: "%") {
                text.append(byte)
            } else {
                PercentEncoding.escape(byte, into: &text)
            }
        }
        self.init(number: account.number, userID: account.userID, escapedName: text.span.text)
    }
}
