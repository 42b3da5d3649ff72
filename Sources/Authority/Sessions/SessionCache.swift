import CountersignGate
import CountersignSchemes
import CountersignThreads
import CountersignWire

/// Sessions in use with their keys ready, so that a request costs a lookup and no allocation. The cache is
/// bounded: sets of four entries, in which a new entry replaces the oldest.
struct SessionCache {
    final class Entry: Sendable {
        let token: SessionToken
        let session: Session
        /// Nil for bearer sessions, whose requests are signed with their release's key.
        let key: SigningKey?

        init(token: SessionToken, session: Session, key: SigningKey?) {
            self.token = token
            self.session = session
            self.key = key
        }
    }

    private static let sets = 128
    private static let ways = 4

    private var entries: [Entry?] = Array(repeating: nil, count: SessionCache.sets * SessionCache.ways)
    private var turn = 0

    func find(_ token: SessionToken) -> Entry? {
        for place in SessionCache.places(of: token.id) {
            if let entry = entries[place], entry.token == token { return entry }
        }
        return nil
    }

    mutating func put(_ entry: Entry) {
        let places = SessionCache.places(of: entry.token.id)
        let free = places.first { entries[$0] == nil || entries[$0]?.token == entry.token }
        entries[free ?? places.lowerBound + turn] = entry
        turn = (turn + 1) % SessionCache.ways
    }

    /// Removes the session's entries of all epochs.
    mutating func remove(_ id: SessionID) {
        for place in SessionCache.places(of: id) where entries[place]?.token.id == id { entries[place] = nil }
    }

    mutating func removeAll() { for place in entries.indices { entries[place] = nil } }

    private static func places(of id: SessionID) -> Range<Int> {
        let set = Int(truncatingIfNeeded: id.hash >> 40) & (sets - 1)
        return set * ways..<(set + 1) * ways
    }
}

/// What a shard has of a session.
struct KnownSession {
    let session: SessionRecord
    /// Of a device-bound session only after its row was verified; else it is read from the store.
    let secret: SessionSecret?
    let confirmation: SessionShard.Confirmation?
}

/// One shard of the live sessions, under a lock of its own, so that a slow operation, such as growing the
/// table, delays few requests.
///
/// Unchecked, because the state is guarded by a lock beside it: `lock` lets event loops read at the same
/// time, and is held for each access.
final class SessionShard: @unchecked Sendable {
    /// The first use of a renewed key, which the store may not have yet.
    struct Confirmation: Sendable, Equatable {
        var epoch: UInt32
        /// Whole Unix seconds.
        var at: Int64
    }

    private let lock = ReadWriteLock()
    private var table = SessionTable()
    private var recentlyUsed = SessionCache()
    private var confirmations: [SessionID: Confirmation] = [:]
    /// How often the cache was cleared.
    private var clearCount = 0

    /// The cached session of a recently used token.
    func cachedEntry(for token: SessionToken) -> SessionCache.Entry? {
        lock.read { recentlyUsed.find(token) }
    }

    func find(_ id: SessionID) -> KnownSession? {
        lock.read {
            table.find(id).map {
                KnownSession(session: $0, secret: table.secret(of: id), confirmation: confirmations[id])
            }
        }
    }

    /// The generation of the policies and accounts that entries are made from. Read it before reading any
    /// of them, and pass it to ``cache(_:for:confirmation:generation:)``.
    var cacheGeneration: Int { lock.read { clearCount } }

    /// Caches an entry made from `session`, unless the session changed or the cache was cleared meanwhile:
    /// the entry may come from an old policy, and nothing would ever remove it.
    func cache(
        _ entry: SessionCache.Entry, for session: SessionRecord, confirmation: Confirmation?,
        generation season: Int
    ) {
        lock.write {
            guard clearCount == season, table.find(session.id)?.change == session.change,
                confirmations[session.id] == confirmation
            else { return }
            recentlyUsed.put(entry)
        }
    }

    /// Stores a row's record and secret, unless the shard has a newer one.
    func put(_ session: SessionRecord, secret: SessionSecret?) {
        lock.write {
            guard let before = table.find(session.id) else {
                // Not cached, nor confirmed: both are of sessions in the table.
                return table.put(session, secret: secret)
            }
            if before.change >= session.change {
                guard before.change == session.change, session.isVerified, !before.isVerified else { return }
            }
            table.put(session, secret: secret)
            recentlyUsed.remove(session.id)
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
            recentlyUsed.remove(id)
            confirmations[id] = nil
        }
    }

    /// Records that the offered epoch was used; nil if that is already recorded or the session has ended.
    func confirm(_ id: SessionID, with confirmation: Confirmation) -> Confirmation? {
        lock.write {
            guard confirmations[id] == nil, let session = table.find(id), !session.isEnded,
                session.hasSuccessor,
                session.epoch &+ 1 == confirmation.epoch
            else { return nil }
            confirmations[id] = confirmation
            recentlyUsed.remove(id)
            return confirmation
        }
    }

    func confirmation(of id: SessionID) -> Confirmation? { lock.read { confirmations[id] } }

    /// First uses that have not been written to the store yet.
    var unsaved: [SessionID: Confirmation] { lock.read { confirmations } }

    /// Clears the cache, because a policy or an account may have changed.
    func clearCache() {
        lock.write {
            recentlyUsed.removeAll()
            clearCount += 1
        }
    }

    var count: Int { lock.read { table.count } }
    var endedCount: Int { lock.read { table.endedCount } }
}
