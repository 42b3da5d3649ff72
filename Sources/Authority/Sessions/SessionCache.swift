import CountersignGate
import CountersignSchemes
import CountersignSeal
import CountersignThreads
import CountersignWire

/// What is kept of sessions in use, so that a request costs a lookup and no allocation. The cache is bounded:
/// sets of four entries, one of which makes room for a new one. It has no table until its first entry.
struct SessionCache<Value> {
    private typealias Entry = (token: SessionToken, value: Value)

    private var entries: [Entry?] = []
    private var turn = 0

    func find(_ token: SessionToken) -> Value? {
        guard !entries.isEmpty else { return nil }
        for place in SessionCache.places(of: token.id) {
            if let entry = entries[place], entry.token == token { return entry.value }
        }
        return nil
    }

    mutating func put(_ value: Value, of token: SessionToken) {
        if entries.isEmpty { entries = Array(repeating: nil, count: SessionCache.sets * SessionCache.ways) }
        let places = SessionCache.places(of: token.id)
        let free = places.first { entries[$0] == nil || entries[$0]?.token == token }
        entries[free ?? places.lowerBound + turn] = (token, value)
        turn = (turn + 1) % SessionCache.ways
    }

    /// Removes the session's entries of all epochs.
    mutating func remove(_ id: SessionID) {
        guard !entries.isEmpty else { return }
        for place in SessionCache.places(of: id) where entries[place]?.token.id == id { entries[place] = nil }
    }

    mutating func removeAll() { entries = [] }

    private static var sets: Int { 128 }
    private static var ways: Int { 4 }

    private static func places(of id: SessionID) -> Range<Int> {
        let set = Int(truncatingIfNeeded: id.hash >> 40) & (sets - 1)
        return set * ways..<(set + 1) * ways
    }
}

/// A session as it was when it was cached, with its key ready.
final class CachedSession: Sendable {
    let session: Session
    /// Nil for bearer sessions, whose requests are signed with their release's key.
    let key: SigningKey?

    init(_ session: Session, key: SigningKey?) {
        self.session = session
        self.key = key
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
    private var recentlyUsed = SessionCache<CachedSession>()
    /// The keys of devices that sign requests, each at epoch 0 of its session: it is the same in all epochs.
    private var deviceKeys = SessionCache<P256Point>()
    private var confirmations: [SessionID: Confirmation] = [:]
    /// How often the caches were cleared.
    private var clearCount = 0

    /// The cached session of a recently used token.
    func cachedSession(of token: SessionToken) -> CachedSession? {
        lock.read { recentlyUsed.find(token) }
    }

    func cachedDeviceKey(of id: SessionID) -> P256Point? {
        lock.read { deviceKeys.find(SessionToken(id: id, epoch: 0)) }
    }

    func find(_ id: SessionID) -> KnownSession? {
        lock.read {
            table.find(id).map {
                KnownSession(session: $0, secret: table.secret(of: id), confirmation: confirmations[id])
            }
        }
    }

    /// The generation of the policies, accounts and rows that entries are made from. Read it before any of
    /// them, and pass it to ``cache(_:of:from:confirmation:generation:)`` or
    /// ``cache(_:from:generation:)``.
    var cacheGeneration: Int { lock.read { clearCount } }

    /// Caches what was made from `session`, unless the session changed or the cache was cleared meanwhile:
    /// it may come from an old policy, and nothing would ever remove it.
    func cache(
        _ cached: CachedSession, of token: SessionToken, from session: SessionRecord,
        confirmation: Confirmation?, generation season: Int
    ) {
        lock.write {
            guard clearCount == season, table.find(session.id)?.change == session.change,
                confirmations[session.id] == confirmation
            else { return }
            recentlyUsed.put(cached, of: token)
        }
    }

    /// Caches the key of the device that `row` names, under the same conditions; only the row may be newer
    /// than the session in memory. ``put(_:secret:)`` removes the key when it gets that row.
    func cache(_ key: P256Point, from row: StoredSession, generation season: Int) {
        lock.write {
            guard clearCount == season, let known = table.find(row.id), row.change >= known.change else {
                return
            }
            deviceKeys.put(key, of: SessionToken(id: row.id, epoch: 0))
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
            removeCached(session.id)
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
            removeCached(id)
            confirmations[id] = nil
        }
    }

    /// Requires the lock.
    private func removeCached(_ id: SessionID) {
        recentlyUsed.remove(id)
        deviceKeys.remove(id)
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

    /// Clears the caches, because a policy or an account may have changed.
    func clearCaches() {
        lock.write {
            recentlyUsed.removeAll()
            deviceKeys.removeAll()
            clearCount += 1
        }
    }

    var count: Int { lock.read { table.count } }
    var endedCount: Int { lock.read { table.endedCount } }
}
