import CountersignHandshake
import CountersignSchemes
import CountersignSeal
import CountersignWire

/// A session's keys: the epoch that the server is known to have, and the successor if the ends agreed on one.
///
/// Values and no I/O: the vault stores each step before the next one begins, so that an interrupted refresh
/// continues where it was. Source: docs/protocol.md, "Refresh".
package struct DeviceSession: Sendable {
    package struct Epoch: Sendable {
        package let number: UInt32
        package let root: SessionRoot
        /// Signs requests and verifies responses: derived once, not for each.
        let requestKey: SigningKey
        /// When its token expires, as far as is known here: whole Unix seconds.
        package var expires: Int64
        /// The release whose login or refresh made it: the server admits its key for that one alone. Nil in a
        /// session that a test of an app made up.
        package let release: KeyID?

        init(number: UInt32, root: SessionRoot, release: KeyID?, expires: Int64) {
            self.number = number
            self.root = root
            self.release = release
            requestKey = SigningKey(root.requestKey)
            self.expires = expires
        }
    }

    package let id: SessionID
    package private(set) var current: Epoch
    /// Agreed upon, and not yet known to be in use at the server.
    package private(set) var successor: Epoch?
    /// The id of the attempt to leave `current`: chosen once, stored before it is sent, and used until the
    /// successor is in use.
    package private(set) var attempt: [UInt8]?
    /// The counter of the last transcript that was begun: stored before the transcript is signed, and never
    /// used again. 0 before the first one.
    package private(set) var counter: Int64
    /// Whether another holder of the device's keys was found: kept, so that each refresh says so until the
    /// authority has answered.
    package private(set) var hasFoundReuse: Bool
    /// The time that its last copy carries, whole Unix seconds: the authority accepts one copy for each time.
    private(set) var asked: Int64?
    /// When the session ends if it is not refreshed: whole Unix seconds.
    package private(set) var idle: Int64

    /// A session from a login or from the vault.
    init(
        id: SessionID, current: Epoch, idle: Int64, successor: Epoch? = nil, attempt: [UInt8]? = nil,
        asked: Int64? = nil, counter: Int64 = 0, hasFoundReuse: Bool = false
    ) {
        self.id = id
        self.current = current
        self.idle = idle
        self.successor = successor
        self.attempt = attempt
        self.asked = asked
        self.counter = counter
        self.hasFoundReuse = hasFoundReuse
    }

    /// The epoch that requests are signed under.
    package var latest: Epoch { successor ?? current }

    package var token: SessionToken { SessionToken(id: id, epoch: latest.number) }

    func token(of epoch: Epoch) -> SessionToken { SessionToken(id: id, epoch: epoch.number) }

    func credentials(of epoch: Epoch, release: KeyID) -> Credentials {
        Credentials(token(of: epoch), key: epoch.requestKey, release: release)
    }

    /// The keys that may sign an answer to this session.
    func keys() -> [KeyID: SigningKey] {
        var keys = [KeyID(token(of: current)): current.requestKey]
        if let successor { keys[KeyID(token(of: successor))] = successor.requestKey }
        return keys
    }

    /// The running attempt or a new one, the counter of its next copy, and by how many seconds the date of
    /// that copy is ahead of `now`, so that no two copies carry the same date. The caller stores the session
    /// before it signs the copy.
    mutating func beginRefresh(at now: Int64, attempt newAttempt: @autoclosure () -> [UInt8]) -> (
        attempt: [UInt8], counter: Int64, ahead: Int64
    ) {
        let attempt = attempt ?? newAttempt()
        self.attempt = attempt
        counter += 1
        var ahead: Int64 = 0
        // A date far ahead comes from a wrong clock that was corrected since.
        if let asked, asked >= now, asked - now < 30 { ahead = asked + 1 - now }
        asked = now + ahead
        return (attempt, counter, ahead)
    }

    /// The server has `epoch`: nothing before it is needed any more.
    mutating func confirm(_ epoch: UInt32) {
        guard let successor, successor.number == epoch else { return }
        current = successor
        self.successor = nil
        attempt = nil
        asked = nil
    }

    /// Takes the successor from the response to a refresh of `current`; `root` is computed from its
    /// `ephemeral`, so only the server can have sent it. It replaces a successor that was offered before: the
    /// server would not have offered another if that one were in use.
    mutating func adoptSuccessor(root: SessionRoot, release: KeyID, expires: Int64, idle: Int64) {
        successor = Epoch(number: current.number + 1, root: root, release: release, expires: expires)
        self.idle = idle
    }

    /// Whether this session may adopt the successor that comes from the attempt that `other` has stored.
    func isSameAttempt(as other: DeviceSession) -> Bool {
        id == other.id && current.number == other.current.number && attempt == other.attempt
    }

    /// What the authority's statement about this session's progress means here.
    enum Progress: Sendable, Equatable {
        /// It concerns a copy, and says nothing new.
        case ofThisDevice
        /// The successor that is stored here is in use.
        case successorInUse
        /// Only another holder of the device's keys can have come that far: this device stores each counter
        /// before it signs, and each successor before it uses it.
        case ofAnotherHolder
    }

    func progress(_ stated: Refusal.RefreshProgress) -> Progress {
        if stated.counter > counter || stated.epoch > latest.number { return .ofAnotherHolder }
        guard let successor, stated.epoch == successor.number else { return .ofThisDevice }
        return .successorInUse
    }

    mutating func skipCounters(_ distance: Int64) { counter += distance }

    mutating func noteReuse() { hasFoundReuse = true }
}

/// A session by tokens that are sent: a party that reads one has the session. For accounts that sign in by
/// sending their password.
package struct BearerSession: Sendable {
    package let id: SessionID
    package internal(set) var token: Secret
    /// Gets new tokens, and has no other use.
    var loginToken: Secret
    /// Whole Unix seconds.
    package var expires: Int64
    package var idle: Int64

    init(id: SessionID, token: Secret, loginToken: Secret, expires: Int64, idle: Int64) {
        self.id = id
        self.token = token
        self.loginToken = loginToken
        self.expires = expires
        self.idle = idle
    }

    /// The header field that a request carries and its signature covers.
    var authorization: Draft.Field {
        Draft.Field(name: "Authorization", value: "Bearer \(token.withExposedBytes { $0.text })")
    }
}
