import CountersignHandshake
import CountersignSeal
import CountersignWire

/// Everything that a client keeps in its vault, as one value: there is no moment at which half of a change can be read.
package struct ClientState: Sendable {
    /// The app, as the authority calls it.
    package var app: String?
    /// Made at the first login, and kept when a session ends: by them the authority knows the device again.
    /// Their private halves are not in this value.
    package var keys: DeviceKeys?
    /// The private halves as an earlier version kept them, in this very value: they are moved to their own
    /// item.
    var inlineKeys: DeviceKeyItem.Entry?
    /// Seconds to add to the device's clock.
    package var clockOffset: Int64 = 0
    package var login: SignedIn?
    /// How the last session ended; nil while one lives, and before there was one.
    package var ended: Ending?
    /// Who signed in last, for the login page. It outlives the session; never the password.
    package var lastAccount: AccountName?
    /// What a newer build keeps beside it.
    var others = StateParts()

    init() {}

    mutating func begin(_ login: SignedIn) {
        self.login = login
        lastAccount = login.account
        ended = nil
    }

    mutating func end(_ ending: Ending) {
        login = nil
        ended = ending
    }
}

/// Who is signed in, and how.
package struct SignedIn: Sendable {
    package enum Session: Sendable {
        case device(DeviceSession)
        case bearer(BearerSession)
    }

    package var account: AccountName
    /// As the device presented itself.
    package var deviceClass: Device.Class
    package var deviceName: Device.Name
    /// The app's rule for sessions side by side, in its own words.
    package var slots: String
    package var session: Session
    /// What a newer build keeps of this session.
    var others = StateParts()

    package var id: SessionID {
        switch session {
        case .device(let session): session.id
        case .bearer(let session): session.id
        }
    }

    package var expires: Int64 {
        switch session {
        case .device(let session): session.latest.expires
        case .bearer(let session): session.expires
        }
    }

    package var idle: Int64 {
        switch session {
        case .device(let session): session.idle
        case .bearer(let session): session.idle
        }
    }
}

/// The name under which the SDK, which has a public state of its own, speaks of it.
package typealias PersistedState = ClientState
