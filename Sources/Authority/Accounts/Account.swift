import CountersignGate
import CountersignWire

/// Somebody who may sign in to an app.
package struct Account: Sendable, Equatable {
    package enum State: String, Sendable, CaseIterable {
        case active
        case locked
        /// Nobody's any more. Its name is kept from being registered by somebody else, whom the backend would take for them.
        case removed
    }

    /// The row; never another account's.
    package var number: Int64
    package var app: AppName
    package var name: AccountName
    /// The backend's own number of the user. Accounts on the login ladder have one, others may.
    package var userID: Int64?
    /// Whole Unix seconds.
    package var created: Int64
    package var state = State.active
    /// What OPAQUE needs; nil for an account that has not got there yet.
    package var registration: StoredRegistration?
    /// What its rung of the login ladder needs. An account with a `registration` has none.
    package var legacy: LegacyCredential?
    /// The hash of a one-time code with which a forgotten password may be set anew, and until when.
    package var reset: StoredReset?

    package init(number: Int64, app: AppName, name: AccountName, userID: Int64? = nil, created: Int64) {
        self.number = number
        self.app = app
        self.name = name
        self.userID = userID
        self.created = created
    }

    /// Whether what a login proved is what the account still has: its registration, by its credential's name, or its rung, by what
    /// is sealed for it. Nil stands for whatever rung it is on.
    package func isProved(by credential: [UInt8]?) -> Bool {
        guard let credential else { return registration == nil && legacy != nil }
        return registration?.credential == credential || legacy?.sealed == credential
    }
}

/// An OPAQUE registration as a store keeps it.
package struct StoredRegistration: Sendable, Equatable {
    /// Bytes of a credential's name.
    package static let credentialCount = 16

    /// Names the OPRF key: random, and new with each registration, so that who starts another registration under a name learns
    /// nothing about the password of the one that stands.
    package var credential: [UInt8]
    /// OPAQUE's record, under the master key.
    package var sealedRecord: [UInt8]

    package init(credential: [UInt8], sealedRecord: [UInt8]) {
        self.credential = credential
        self.sealedRecord = sealedRecord
    }
}

package struct StoredReset: Sendable, Equatable {
    /// SHA-256 of the code.
    package var codeHash: [UInt8]
    /// Whole Unix seconds; from then on it is no good.
    package var until: Int64

    package init(codeHash: [UInt8], until: Int64) {
        self.codeHash = codeHash
        self.until = until
    }
}
