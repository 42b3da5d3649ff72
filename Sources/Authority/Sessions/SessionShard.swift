import CountersignGate
import CountersignSchemes
import CountersignWire

/// One of the parts that live sessions are kept in, each under a lock of its own, so that what holds one up for a moment,
/// such as a table that grows, holds up few.
///
/// Safe to share: everything is touched under the lock.
final class SessionShard: @unchecked Sendable {
    /// The first use of a renewed key, which the store does not know of yet.
    struct Confirmation: Sendable, Equatable {
        var epoch: UInt32
        /// Whole Unix seconds.
        var at: Int64
    }

    private let lock = ReadWriteLock()
    private var table = SessionTable()
    private var hot = HotSessions()
    private var confirmations: [SessionID: Confirmation] = [:]
    /// How often it was cooled down.
    private var coolings = 0

    /// The session of a token that was used lately.
    func hot(_ token: SessionToken) -> HotSessions.Entry? { lock.read { hot.find(token) } }

    func find(_ id: SessionID) -> (session: LiveSession, confirmation: Confirmation?)? {
        lock.read { table.find(id).map { ($0, confirmations[id]) } }
    }

    /// Which state of policies and accounts is read from now on: for ``keep(_:of:_:since:)``, and to be asked before any is read.
    var season: Int { lock.read { coolings } }

    /// Keeps what was worked out from `session`, unless that changed meanwhile, or there was a cooling down: the policy that it
    /// was worked out by may be the one before, and nothing would ever remove it.
    func keep(_ entry: HotSessions.Entry, of session: LiveSession, _ confirmation: Confirmation?, since season: Int) {
        lock.write {
            guard coolings == season, table.find(session.id)?.change == session.change,
                confirmations[session.id] == confirmation
            else { return }
            hot.put(entry)
        }
    }

    /// Takes a row as the store has it; one that is older than what is here is passed over.
    func put(_ session: LiveSession) {
        lock.write {
            if let before = table.find(session.id), before.change >= session.change { return }
            table.put(session)
            hot.remove(session.id)
            if let ahead = confirmations[session.id],
                session.isEnded || !session.hasSuccessor || session.epoch >= ahead.epoch
            {
                confirmations[session.id] = nil
            }
        }
    }

    func remove(_ id: SessionID) {
        lock.write {
            table.remove(id)
            hot.remove(id)
            confirmations[id] = nil
        }
    }

    /// Notes that the offered epoch was used; nil where that is known, or the session is over.
    func confirm(_ id: SessionID, _ confirmation: Confirmation) -> Confirmation? {
        lock.write {
            guard confirmations[id] == nil, let session = table.find(id), !session.isEnded, session.hasSuccessor,
                session.epoch &+ 1 == confirmation.epoch
            else { return nil }
            confirmations[id] = confirmation
            hot.remove(id)
            return confirmation
        }
    }

    func confirmation(of id: SessionID) -> Confirmation? { lock.read { confirmations[id] } }

    /// Those that no write has brought to the store yet.
    var unsaved: [SessionID: Confirmation] { lock.read { confirmations } }

    /// What was worked out is worked out anew: a policy or an account may have changed.
    func coolDown() {
        lock.write {
            hot.removeAll()
            coolings += 1
        }
    }

    var count: Int { lock.read { table.count } }
    var endedCount: Int { lock.read { table.endedCount } }
}
