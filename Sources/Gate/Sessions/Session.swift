import CountersignSchemes
import CountersignWire

/// What is known of a session when a request names it: a value of that moment.
package final class Session: Sendable {
    /// How its requests prove that they are its own.
    package enum Kind: String, Sendable {
        /// By a key that both ends have and neither sends.
        case device
        /// By a token that is sent with each, and that whoever sees it can use: for clients without OPAQUE.
        case bearer
    }

    /// How it began.
    package enum Opening: String, Sendable, CaseIterable {
        /// By a login that a release signed, or that an app without scheme `token` took unsigned. Its token
        /// opens nothing by itself.
        case signed
        /// By a login without a signature, to an app that takes tokens alone.
        case unsigned
    }

    /// Which of a session's keys, or of a bearer's tokens.
    package enum Edition: Sendable {
        case current
        /// A refresh made it, and its first use will show that the client has it.
        case offered
        /// The one before the current one: for requests that were on their way.
        case previous
    }

    package let id: SessionID
    package let kind: Kind
    package let edition: Edition
    /// Which edition of its key the request names; 0 for bearers.
    package let epoch: UInt32
    package let account: AccountIdentity
    package let app: String
    package let platform: String
    package let opening: Opening
    /// The release that it was last signed in or renewed under: known of sessions that were opened without a
    /// signature.
    package let release: KeyID?
    /// From then on requests under this token are refused as `token-expired`: whole Unix seconds.
    package let expires: Int64
    /// From then on the session has ended, unless it is renewed before: whole Unix seconds.
    package let idleEnd: Int64
    /// Set once the session is over; its key is kept for a while, so that only its holder is told why.
    package let end: SessionEnd?

    package init(
        id: SessionID, kind: Kind, epoch: UInt32, account: AccountIdentity, app: String, platform: String,
        edition: Edition = .current, opening: Opening = .signed, release: KeyID? = nil, expires: Int64,
        idleEnd: Int64 = .max, end: SessionEnd? = nil
    ) {
        self.opening = opening
        self.release = release
        self.id = id
        self.kind = kind
        self.epoch = epoch
        self.account = account
        self.app = app
        self.platform = platform
        self.edition = edition
        self.expires = expires
        self.idleEnd = idleEnd
        self.end = end
    }
}

/// Whose session it is.
package struct AccountIdentity: Sendable, Hashable {
    /// The account's row, which is never another account's.
    package var number: Int64
    /// As the backend is told: its own user id where it has one, else the account's name, what is not visible ASCII
    /// as %XX.
    package var subject: String

    package init(number: Int64, subject: String) {
        self.number = number
        self.subject = subject
    }
}

/// How a session ended.
package struct SessionEnd: Sendable, Equatable {
    package enum Reason: String, Sendable, CaseIterable {
        /// Idle for too long.
        case expired
        /// Another login took its slot.
        case replaced
        case signedOut = "signed-out"
        /// By an administrator, or from another session of the account.
        case revoked
        /// A key that had been renewed was used again.
        case reused
        case passwordChanged = "password-changed"
        /// The account was locked or removed.
        case disabled
        /// A backup was put back.
        case restored
    }

    package var reason: Reason
    /// Whole Unix seconds.
    package var at: Int64
    /// What kind of device took its place, for `replaced`.
    package var by: String?

    package init(_ reason: Reason, at: Int64, by: String? = nil) {
        self.reason = reason
        self.at = at
        self.by = by
    }
}
