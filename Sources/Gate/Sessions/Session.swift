import CountersignSchemes
import CountersignSeal
import CountersignWire

/// The state of a session at the moment when a request names it.
package final class Session: Sendable {
    /// How a request proves that it belongs to the session.
    package enum Kind: String, Sendable {
        /// By a shared key that is never sent.
        case device
        /// By a token that each request sends and that any reader of the request can use: for clients without
        /// OPAQUE.
        case bearer
    }

    /// How the session began.
    package enum LoginKind: String, Sendable, CaseIterable {
        /// By a login that a release signed, or by an unsigned login to an app without scheme `token`. Its
        /// token alone authenticates no request.
        case signed
        /// By a login without a signature, to an app that accepts tokens alone.
        case unsigned
    }

    /// What the session's requests prove besides the password of its login.
    package enum KeyPossession: Sendable {
        /// Nothing: a bearer token.
        case none
        /// The session's request key, which the device has in its memory, wherever its own keys are.
        case software
    }

    /// Whose requests a key of the session signs. A session's request names its release and proves only its
    /// session; without this, a retired version could go on under a live version's public id.
    package enum ReleaseBinding: Sendable, Equatable {
        /// The release whose login or refresh made the key.
        case only(KeyID)
        /// For what is not a device-bound session's key: the release's own key signs a bearer session's
        /// requests, and an upload ticket names its release itself.
        case notApplicable
    }

    /// Which of a session's keys or bearer tokens.
    package enum Edition: Sendable {
        case current
        /// Issued by a refresh; its first use confirms that the client has received it.
        case offered
        /// The one before the current one, for requests in transit during the refresh.
        case previous
    }

    package let id: SessionID
    package let kind: Kind
    package let edition: Edition
    /// The epoch of the key that the request names; 0 for bearer sessions.
    package let epoch: UInt32
    package let account: AccountIdentity
    package let app: String
    package let platform: String
    package let loginKind: LoginKind
    /// The release under which the session was last signed in or renewed; known for sessions opened without a
    /// signature.
    package let release: KeyID?
    /// The release that this key of the session is for.
    package let binding: ReleaseBinding
    /// From this time on, requests under this token are refused as `token-expired`; whole Unix seconds.
    package let expires: Int64
    /// When the session ends unless it is renewed before; whole Unix seconds.
    package let idleEnd: Int64
    /// When the session's login was; whole Unix seconds.
    package let created: Int64
    package let keyPossession: KeyPossession
    /// Set once the session has ended. Its key is kept for a while, so that only its holder learns the
    /// reason.
    package let end: SessionTermination?

    package init(
        id: SessionID, kind: Kind, epoch: UInt32, account: AccountIdentity, app: String, platform: String,
        edition: Edition = .current, loginKind: LoginKind = .signed, release: KeyID? = nil,
        binding: ReleaseBinding = .notApplicable, expires: Int64, idleEnd: Int64 = .max, created: Int64 = 0,
        keyPossession: KeyPossession = .none, end: SessionTermination? = nil
    ) {
        self.created = created
        self.keyPossession = keyPossession
        self.loginKind = loginKind
        self.release = release
        self.binding = binding
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

/// The account of a session.
package struct AccountIdentity: Sendable, Hashable {
    /// The account's row number, which is never reused for another account.
    package var number: Int64
    /// The user id that the backend itself gave; nil if it gave none.
    package let userID: Int64?
    /// The subject as the backend receives it: `id:` and the backend's user id if it gave one, otherwise
    /// `name:` and the account's name. The type comes first, so that no language reads a name that a person
    /// chose, such as `42e0`, as the number of a user.
    package let subject: String

    /// `escapedName` is visible ASCII.
    package init(number: Int64, userID: Int64?, escapedName: String) {
        self.number = number
        self.userID = userID
        subject = userID.map { "id:\($0)" } ?? "name:\(escapedName)"
    }

    /// The user ids that the authority tells legacy clients of accounts without one: they need a number
    /// over 0, and some keep it in 32 bits. No backend is told one, and none may give one.
    package static let clientNumbers: ClosedRange<Int64> = 2_000_000_000...Int64(Int32.max)

    /// What a legacy client receives as `userId`: the backend's id, or a number that only this account's
    /// clients have; nil if the numbers for accounts without an id are used up.
    package var clientNumber: Int64? {
        if let userID { return userID }
        let (sum, overflow) = AccountIdentity.clientNumbers.lowerBound.addingReportingOverflow(number)
        return overflow || !AccountIdentity.clientNumbers.contains(sum) ? nil : sum
    }

    /// Whether a legacy client that states this user means the account: it states the number that it
    /// received, or the account's name. A name that begins with anything but a letter is not accepted,
    /// because some backends read it as a number.
    package func isStated(as user: Span<UInt8>) -> Bool {
        if let clientNumber, user.matches(Array("\(clientNumber)".utf8).span) { return true }
        guard userID == nil, !user.isEmpty, ASCII.isLetter(user[0]) else { return false }
        return user.matches(Array(subject.utf8.dropFirst(5)).span)
    }
}

/// How a session ended.
package struct SessionTermination: Sendable, Equatable {
    package enum Reason: String, Sendable, CaseIterable {
        /// Idle for too long.
        case expired
        /// Another login took its slot.
        case replaced
        case signedOut = "signed-out"
        /// Revoked by an administrator or from another session of the account.
        case revoked
        /// A key or token was used again after its renewal.
        case reused
        case passwordChanged = "password-changed"
        /// The account was locked or removed.
        case disabled
        /// A backup was restored.
        case restored
    }

    package var reason: Reason
    /// Whole Unix seconds.
    package var at: Int64
    /// The kind of device of the session that replaced it, for `replaced`.
    package var by: String?

    package init(_ reason: Reason, at: Int64, by: String? = nil) {
        self.reason = reason
        self.at = at
        self.by = by
    }
}

/// The source of the gate's sessions. It holds all live sessions in memory, and finds ended sessions for as
/// long as they are kept. It never suspends the request.
package protocol SessionSource: Sendable {
    /// The session of that token, with the key for that epoch; nil if there is none, and for epochs whose key
    /// is no longer kept.
    func session(for token: SessionToken) throws(OperationalError) -> (Session, SigningKey)?

    /// The session of a bearer token; nil if there is none. Only the token's hash is looked up.
    func session(bearing token: Span<UInt8>) throws(OperationalError) -> Session?

    /// The device key of that session; nil if there is no such session, and for bearer sessions.
    func deviceKey(of id: SessionID) throws(OperationalError) -> P256Point?

    /// The upload ticket with that text, and the session that requested it, which may have ended; nil if
    /// there is none. Text that cannot be a ticket is rejected without a query to the store.
    func uploadTicket(_ text: Span<UInt8>) throws(OperationalError) -> (UploadTicketRecord, Session)?

    /// Records that a request under this session was accepted. The first one under a renewed key confirms
    /// that the client has the key.
    func noteUse(of session: Session, at now: Int64)
}

extension SessionSource {
    package func uploadTicket(
        _ text: Span<UInt8>
    ) throws(OperationalError) -> (UploadTicketRecord, Session)? { nil }
}

/// A source without sessions, for a gate that knows releases only.
package struct EmptySessionSource: SessionSource {
    package init() {}

    package func session(
        for token: SessionToken
    ) throws(OperationalError) -> (Session, SigningKey)? { nil }

    package func session(bearing token: Span<UInt8>) throws(OperationalError) -> Session? { nil }

    package func deviceKey(of id: SessionID) throws(OperationalError) -> P256Point? { nil }

    package func noteUse(of session: Session, at now: Int64) {}
}

/// How many sessions of one account may exist side by side. Source: docs/protocol.md, "Slots".
package enum SlotRule: Sendable, Equatable {
    case single
    case perPlatform
    case perDeviceClass
    /// 1 or more; a new session beyond the limit ends the oldest.
    case limit(Int)
    case unlimited
}

extension SlotRule: CustomStringConvertible {
    /// The form used in policies and responses.
    package var description: String {
        switch self {
        case .single: "single"
        case .perPlatform: "per-platform"
        case .perDeviceClass: "per-device-class"
        case .limit(let most): "limit(\(most))"
        case .unlimited: "unlimited"
        }
    }
}
