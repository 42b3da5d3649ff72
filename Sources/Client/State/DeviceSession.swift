import CountersignHandshake
import CountersignSchemes
import CountersignSeal
import CountersignWire

/// A session by its keys: the epoch that the server is known to have, and the one that follows where it was agreed upon.
///
/// Values and no I/O: each step is kept in the vault before the next one is taken, so that whatever is interrupted goes on
/// where it was. Source: docs/protocol.md, "Refresh".
package struct DeviceSession: Sendable {
    package struct Epoch: Sendable {
        package let number: UInt32
        package let root: SessionRoot
        /// What requests are signed with, and answers to them: derived once, not for each.
        let requestKey: SigningKey
        /// When its token runs out, as far as is known here: whole Unix seconds.
        package var expires: Int64

        init(number: UInt32, root: SessionRoot, expires: Int64) {
            self.number = number
            self.root = root
            requestKey = SigningKey(root.requestKey)
            self.expires = expires
        }
    }

    package let id: SessionID
    package private(set) var current: Epoch
    /// Agreed upon, and not yet known to be in use at the server.
    package private(set) var successor: Epoch?
    /// Names the attempt to leave `current`: chosen once, kept before it is sent, used until the successor is in use.
    private(set) var attempt: [UInt8]?
    /// The time that the last copy of it bears, whole Unix seconds: the authority takes one copy for each.
    private(set) var asked: Int64?
    /// When the session ends if it is not refreshed: whole Unix seconds.
    package private(set) var idle: Int64

    /// As a login gives it, or the vault.
    init(
        id: SessionID, current: Epoch, idle: Int64, successor: Epoch? = nil, attempt: [UInt8]? = nil,
        asked: Int64? = nil
    ) {
        self.id = id
        self.current = current
        self.idle = idle
        self.successor = successor
        self.attempt = attempt
        self.asked = asked
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

    /// The attempt that goes on, or a new one, and how many seconds ahead of `now` its next copy is to be dated, so that no two
    /// are dated alike. To be kept before it is sent.
    mutating func beginRefresh(at now: Int64, _ newAttempt: @autoclosure () -> [UInt8]) -> (
        attempt: [UInt8], ahead: Int64
    ) {
        let attempt = attempt ?? newAttempt()
        self.attempt = attempt
        var ahead: Int64 = 0
        // Far ahead is a clock that was wrong, and was corrected since.
        if let asked, asked >= now, asked - now < 30 { ahead = asked + 1 - now }
        asked = now + ahead
        return (attempt, ahead)
    }

    /// The server has `epoch`: nothing before it is needed any more.
    mutating func confirm(_ epoch: UInt32) {
        guard let successor, successor.number == epoch else { return }
        current = successor
        self.successor = nil
        attempt = nil
        asked = nil
    }

    /// What a refresh of `current` was answered, by whom only the server can be: `root` is computed from its `ephemeral`. It takes the
    /// place of a successor that was offered before: one that was used meanwhile would not have been offered anew.
    mutating func follow(root: SessionRoot, expires: Int64, idle: Int64) {
        successor = Epoch(number: current.number + 1, root: root, expires: expires)
        self.idle = idle
    }

    /// Whether an answer to the attempt that `other` has kept may be followed from here.
    func isSameAttempt(as other: DeviceSession) -> Bool {
        id == other.id && current.number == other.current.number && attempt == other.attempt
    }

    /// The next refresh is another attempt: the one so far led to an epoch that is not known here.
    mutating func abandonAttempt() { attempt = nil }
}
