import CountersignGate
import CountersignSchemes
import CountersignSeal
import CountersignThreads
import CountersignWire
import Synchronization

/// All sessions in memory, for the gate, including ended ones while they are retained. The next request
/// sees a change by another process; it sees a change by this server once that is durable.
///
/// Unchecked, because `position` and `rowEdition` are guarded by a lock beside them, which is held while the
/// store is read: `positionLock`. Each shard has its own lock.
package final class SessionDirectory: SessionSource, @unchecked Sendable {
    /// How far the directory has followed the store.
    private struct StorePosition {
        var generation: UInt64
        /// The store revision at which policies were last read.
        var revision: Int64
        var change: Int64
    }

    private static let shardCount = 64
    private static let pageCount = 2_000

    let deployment: Deployment
    package let keys: ReleaseKeyDirectory
    /// The connection that event loops read with; it never waits for a writer.
    let reader: any Store
    private let writer: any StoreWriter
    private let shards = (0..<SessionDirectory.shardCount).map { _ in SessionShard() }
    let appPlatforms = AppPlatformTable()
    let uploadTicketKey: UploadTicketKey
    /// Nil where no other machine can end a session.
    private let lease: NodeLease?
    /// Serialises following the store.
    private let positionLock = ReadWriteLock()
    private var position: StorePosition
    /// ``RowAuthenticator/edition`` when the caches were last cleared; guarded like `position`.
    private var rowEdition: UInt64 = 0
    /// A copy of the position's generation that requests compare without the lock.
    private let generation: AtomicGeneration

    /// Reads every session from the store.
    package init(
        _ deployment: Deployment, keys: ReleaseKeyDirectory, reader: any Store, writer: any StoreWriter,
        lease: NodeLease? = nil
    ) throws(OperationalError) {
        self.deployment = deployment
        self.keys = keys
        self.reader = reader
        self.writer = writer
        self.lease = lease
        uploadTicketKey = UploadTicketKey(try deployment.bearerKey())
        // The generation is read before the store, so that a change between the two is read twice and never
        // missed.
        let current = deployment.generation.current
        position = StorePosition(generation: current, revision: keys.revision, change: 0)
        generation = AtomicGeneration(current)
        try readChanges()
    }

    func shard(of id: SessionID) -> SessionShard {
        shards[Int(truncatingIfNeeded: id.hash) & (SessionDirectory.shardCount - 1)]
    }

    // MARK: For the gate

    /// Refuses where this node cannot know that a session has not ended at another one.
    func requireFreshLease() throws(OperationalError) { try lease?.requireFresh() }

    /// Whether a session that was looked up before has ended since.
    func hasEnded(since session: Session) -> Bool {
        guard let known = shard(of: session.id).find(session.id) else { return true }
        return known.session.end != session.end
    }

    /// Fails closed if the store cannot be read after a change, because the session may just have been
    /// revoked.
    package func session(for token: SessionToken) throws(OperationalError) -> (Session, SigningKey)? {
        try session(for: token, reads: .allowed)
    }

    /// The same; throws ``OperationalError/needsStore`` where `reads` forbids what the lookup needs.
    package func session(
        for token: SessionToken, reads: StoreReads
    ) throws(OperationalError) -> (Session, SigningKey)? {
        try lease?.requireFresh()
        try refreshIfChanged(reads: reads)
        var cached = shard(of: token.id).cachedSession(of: token)
        if cached == nil { cached = try cacheSession(of: token, reads: reads) }
        guard let cached, let key = cached.key else { return nil }
        return (cached.session, key)
    }

    package func deviceKey(of id: SessionID) throws(OperationalError) -> P256Point? {
        try deviceKey(of: id, reads: .allowed)
    }

    /// The same; throws ``OperationalError/needsStore`` where `reads` forbids what the lookup needs.
    package func deviceKey(
        of id: SessionID, reads: StoreReads
    ) throws(OperationalError) -> P256Point? {
        try lease?.requireFresh()
        try refreshIfChanged(reads: reads)
        let shard = shard(of: id)
        if let key = shard.cachedDeviceKey(of: id) { return key }
        try reads.require()
        let season = shard.cacheGeneration
        guard let row = try reader.session(id), row.id == id, case .device(let device) = row.credentials
        else { return nil }
        guard let key = P256Point(device.signingKey) else {
            throw OperationalError(.failed, message: "session \(id): its device's key is none")
        }
        shard.cache(key, from: row, generation: season)
        return key
    }

    package func noteUse(of session: Session, at now: Int64) {
        // Only the first use of a renewed key matters.
        guard session.edition == .offered, let epoch = offeredEpoch(of: session) else { return }
        let confirmation = SessionShard.Confirmation(epoch: epoch, at: now)
        if let first = shard(of: session.id).confirm(session.id, with: confirmation) {
            save(first, of: session.id)
        }
    }

    // MARK: Following the store

    /// Compares with the generation counter that commands increment, and reads the changes.
    package func refreshIfChanged(reads: StoreReads = .allowed) throws(OperationalError) {
        guard generation.value != deployment.generation.current else { return }
        try reads.require()
        try positionLock.write { () throws(OperationalError) in
            let current = deployment.generation.current
            guard position.generation != current else { return }
            try readChanges()
            clearCaches()
            position.generation = current
            generation.value = current
        }
    }

    /// Reads the changes of sessions, which leave policies and accounts as they are.
    package func followChanges() throws(OperationalError) {
        try positionLock.write { () throws(OperationalError) in try readChanges() }
    }

    /// Reads changes that no counter announced and retries failed writes; a timer calls it every few
    /// seconds.
    package func reconcile() throws(OperationalError) {
        try refreshIfChanged()
        try positionLock.write { () throws(OperationalError) in
            try readChanges()
            // The same timer reconciles the release keys. The policy of a process that died before it
            // incremented the counter is known by now.
            let isSame = keys.revision == position.revision && deployment.rows.edition == rowEdition
            if !isSame { clearCaches() }
        }
        for shard in shards { for (id, confirmation) in shard.unsaved { save(confirmation, of: id) } }
    }

    /// Requires `positionLock`. Clears the caches, whose entries depend on policies.
    private func clearCaches() {
        position.revision = keys.revision
        rowEdition = deployment.rows.edition
        for shard in shards { shard.clearCaches() }
    }

    /// Requires `positionLock`, except in the initializer.
    private func readChanges() throws(OperationalError) {
        // The numbers of changes to come are beyond this one.
        position.change = min(position.change, try reader.sessionChange())
        var after = position.change
        while true {
            let page = try reader.outlines(changedAfter: after, limit: SessionDirectory.pageCount)
            put(page, isVerified: false)
            if let change = try lastAuthenticChange(in: page) { position.change = change }
            guard let last = page.last, page.count == SessionDirectory.pageCount else { return }
            // A damaged file can have them in any order, and the same page could come again and again.
            guard last.change > after else {
                throw OperationalError(
                    .unreachable, message: "the store's sessions are not in order; restore a backup")
            }
            after = last.change
        }
    }

    /// The number of the last row that is authentic: behind that of another, changes to come could be missed.
    /// Nil for none; such rows are read again the next time.
    private func lastAuthenticChange(in page: [SessionOutline]) throws(OperationalError) -> Int64? {
        for row in page.reversed() {
            do {
                if let stored = try reader.session(row.id), stored.change >= row.change { return row.change }
            } catch  where error.kind == .failed {
                continue
            }
        }
        return nil
    }

    /// Applies rows as they are in the store: the server's own changes, once they are durable.
    package func apply(_ rows: [StoredSession]) { put(rows.map { SessionOutline($0) }, isVerified: true) }

    private func put(_ rows: [SessionOutline], isVerified: Bool) {
        // Most rows of a page have the same.
        var last: (place: AppPlatformTable.AppPlatform, number: UInt32)?
        for row in rows {
            let place = AppPlatformTable.AppPlatform(row)
            let number = last?.place == place ? last?.number : nil
            let known = number ?? appPlatforms.number(of: place)
            last = (place, known)
            shard(of: row.id).put(
                SessionRecord(row, appPlatform: known, isVerified: isVerified),
                secret: row.credentials.secret)
        }
    }

    /// Reads these sessions again, which a change of their account ended.
    package func reload(_ ids: [SessionID]) throws(OperationalError) {
        for id in ids { if let row = try reader.session(id) { apply([row]) } }
    }

    /// The record of a session whose row was verified since it was read; nil if the row is gone. Throws if
    /// the row is not authentic, or an earlier one than the server knows.
    func verified(_ known: KnownSession, reads: StoreReads) throws(OperationalError) -> KnownSession? {
        let live = known.session
        let table = AuthenticatedTable.session
        guard deployment.rows.accepts(group: table.group(ofAccount: live.account), of: table) else {
            throw OperationalError(
                .failed, message: "session \(live.id): the rows of its group do not add up")
        }
        if live.isVerified { return known }
        try reads.require()
        guard let row = try reader.session(live.id) else { return nil }
        guard row.change >= live.change else {
            deployment.rows.refused(live.id.description, of: table)
            throw OperationalError(.failed, message: "session \(live.id): its row is an earlier one")
        }
        apply([row])
        guard let now = shard(of: live.id).find(live.id) else { return nil }
        // A newer row may have been read meanwhile.
        return now.session.isVerified ? now : try verified(now, reads: reads)
    }

    /// Forgets sessions that the store has deleted.
    package func forget(_ ids: [SessionID]) {
        for id in ids { shard(of: id).remove(id) }
    }

    /// Sessions in memory, and how many of them have ended.
    package var counts: (all: Int, ended: Int) {
        shards.reduce((0, 0)) { ($0.0 + $1.count, $0.1 + $1.endedCount) }
    }

    /// First uses of renewed keys that may not be in the store yet.
    package var unsavedCount: Int { shards.reduce(0) { $0 + $1.unsaved.count } }

    /// Writes the first use of a renewed key to the store. ``reconcile()`` retries a failed write and reads
    /// the row once it is durable, which is not known here.
    private func save(_ confirmation: SessionShard.Confirmation, of id: SessionID) {
        writer.writeLater { (store) throws(OperationalError) in
            guard let row = try store.session(id), row.end == nil,
                let next = row.credentials.confirmed(confirmation.epoch, at: confirmation.at)
            else { return }
            _ = try store.swap(id, from: row.credentials, to: next, at: max(row.used, confirmation.at))
        }
    }
}

/// A generation that every request reads and few operations write.
final class AtomicGeneration: Sendable {
    private let number: Atomic<UInt64>

    init(_ value: UInt64) { number = Atomic(value) }

    var value: UInt64 {
        get { number.load(ordering: .acquiring) }
        set { number.store(newValue, ordering: .releasing) }
    }
}

/// Sessions by the bearer tokens that clients send. A token contains its session's id, so no index is
/// needed.
extension SessionDirectory {
    package func session(bearing text: Span<UInt8>) throws(OperationalError) -> Session? {
        try session(bearing: text, reads: .allowed)
    }

    /// The same; throws ``OperationalError/needsStore`` where `reads` forbids what the lookup needs.
    package func session(
        bearing text: Span<UInt8>, reads: StoreReads
    ) throws(OperationalError) -> Session? {
        try lease?.requireFresh()
        try refreshIfChanged(reads: reads)
        guard let token = BearerToken(text) else { return nil }
        let shard = shard(of: token.session)
        let season = shard.cacheGeneration
        guard let known = shard.find(token.session), known.edition(of: token) != nil,
            let verified = try verified(known, reads: reads), let edition = verified.edition(of: token)
        else { return nil }
        let (live, ahead) = (verified.session, known.confirmation)
        guard edition != .previous else {
            try reads.require()
            return try session(live, edition: edition)
        }
        // In the cache, a bearer session has the single epoch 0.
        let place = SessionToken(id: token.session, epoch: 0)
        if let cached = shard.cachedSession(of: place) { return cached.session }
        try reads.require()
        let session = try session(live, edition: ahead == nil ? edition : .current)
        shard.cache(
            CachedSession(session, key: nil), of: place, from: live, confirmation: ahead, generation: season)
        return session
    }

    /// Whether such a session exists, ended or not. It tells made-up login tokens apart without waiting for
    /// the writer.
    func knows(_ id: SessionID) throws(OperationalError) -> Bool {
        try refreshIfChanged()
        return shard(of: id).find(id) != nil
    }

    /// The epoch that a use of this session confirms. A bearer token that was renewed meanwhile confirms
    /// nothing.
    func offeredEpoch(of session: Session) -> UInt32? {
        guard session.kind == .bearer else { return session.epoch }
        guard let live = shard(of: session.id).find(session.id)?.session, live.moment == session.expires
        else {
            return nil
        }
        return live.epoch &+ 1
    }
}

extension KnownSession {
    fileprivate func edition(of token: BearerToken) -> Session.Edition? {
        session.edition(ofTokenHash: token.hash.span, among: secret)
    }
}

extension SessionOutline.Credentials {
    fileprivate var secret: SessionSecret? {
        switch self {
        case .device(let device): device.sealedRoot
        case .bearer(let bearer): bearer.tokenHashes
        }
    }
}

extension BearerCredentials {
    /// Each issue time is another edition of the tokens.
    var edition: UInt32 { UInt32(truncatingIfNeeded: issued) }
}

extension StoredSession.Credentials {
    /// The credentials after the offered `epoch` was used; nil if it is no longer offered.
    func confirmed(_ epoch: UInt32, at now: Int64) -> StoredSession.Credentials? {
        switch self {
        case .device(let device):
            guard device.epoch &+ 1 == epoch else { return nil }
            return device.confirmed(at: now).map { .device($0) }
        case .bearer(var bearer):
            guard bearer.edition &+ 1 == epoch, bearer.previousLoginTokenHash != nil else { return nil }
            bearer.previousLoginTokenHash = nil
            return .bearer(bearer)
        }
    }
}
