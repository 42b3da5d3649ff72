import CountersignGate
import CountersignSchemes
import CountersignSeal
import CountersignWire

/// Every session in memory, for the gate; ended ones too, while they are kept. A change by another process is seen by the
/// next request, and the server's own once it is durable.
///
/// Safe to share: shards lock themselves, and `followed` is touched under `following`.
package final class LiveSessions: SessionSource, @unchecked Sendable {
    /// How far the store was followed.
    private struct Followed {
        var generation: UInt64
        /// The store's, that policies were last read at.
        var revision: Int64
        var change: Int64
    }

    private static let shardCount = 64
    private static let pageCount = 2_000

    let deployment: Deployment
    package let keys: LiveKeys
    /// A connection that loops read by: it never waits for a writer.
    let reader: any Store
    private let writer: any StoreWriter
    private let shards = (0..<LiveSessions.shardCount).map { _ in SessionShard() }
    let places = Places()
    let uploadTicketKey: UploadTicketKey
    /// Lets one at a time follow the store.
    private let following = ReadWriteLock()
    private var followed: Followed
    /// The same for who only compares.
    private let generation: AtomicGeneration

    /// Reads every session from the store.
    package init(_ deployment: Deployment, _ keys: LiveKeys, reader: any Store, writer: any StoreWriter) throws(Fault) {
        self.deployment = deployment
        self.keys = keys
        self.reader = reader
        self.writer = writer
        uploadTicketKey = UploadTicketKey(try deployment.bearerKey())
        // Before the store: a change that comes between the two is then read twice, never missed.
        let current = deployment.generation.current
        followed = Followed(generation: current, revision: keys.revision, change: 0)
        generation = AtomicGeneration(current)
        try readChanges()
    }

    func shard(of id: SessionID) -> SessionShard {
        shards[Int(truncatingIfNeeded: id.hash) & (LiveSessions.shardCount - 1)]
    }

    // MARK: For the gate

    nonisolated(nonsending) package func session(
        for token: SessionToken
    ) async throws(Fault) -> (Session, SigningKey)? { try find(token) }

    /// The same, without suspending. Where the store cannot be read after a change, it fails closed: the session could be
    /// one that was just revoked.
    package func find(_ token: SessionToken) throws(Fault) -> (Session, SigningKey)? {
        try follow()
        var entry = shard(of: token.id).hot(token)
        if entry == nil { entry = try warmUp(token) }
        guard let entry, let key = entry.key else { return nil }
        return (entry.session, key)
    }

    nonisolated(nonsending) package func deviceKey(of id: SessionID) async throws(Fault) -> P256Point? {
        guard case .device(let device)? = try reader.session(id)?.credentials else { return nil }
        guard let point = P256Point(device.signingKey) else {
            throw Fault(.failed, "session \(id): its device's key is none")
        }
        return point
    }

    package func noteUse(of session: Session, at now: Int64) {
        // Only of a renewed key it matters, and of that only the first time.
        guard session.edition == .offered, let epoch = offeredEpoch(of: session) else { return }
        let confirmation = SessionShard.Confirmation(epoch: epoch, at: now)
        if let first = shard(of: session.id).confirm(session.id, confirmation) { save(first, of: session.id) }
    }

    // MARK: Following the store

    /// Compares with the counter that commands count up, and reads what changed.
    func follow() throws(Fault) {
        guard generation.value != deployment.generation.current else { return }
        try following.write { () throws(Fault) in
            let current = deployment.generation.current
            guard followed.generation != current else { return }
            try readChanges()
            coolDown()
            followed.generation = current
            generation.value = current
        }
    }

    /// Reads what no counter told of, and writes what could not be written: for a timer, every few seconds.
    package func reconcile() throws(Fault) {
        try follow()
        try following.write { () throws(Fault) in
            try readChanges()
            // Keys are reconciled by the same timer: the policy of who died before he could count is known by now.
            if keys.revision != followed.revision { coolDown() }
        }
        for shard in shards { for (id, confirmation) in shard.unsaved { save(confirmation, of: id) } }
    }

    /// With `following` held: what was worked out by a policy is worked out anew.
    private func coolDown() {
        followed.revision = keys.revision
        for shard in shards { shard.coolDown() }
    }

    /// With `following` held, or before anybody else knows of this.
    private func readChanges() throws(Fault) {
        while true {
            let page = try reader.sessions(changedAfter: followed.change, limit: LiveSessions.pageCount)
            take(page)
            if let last = page.last { followed.change = last.change }
            guard page.count == LiveSessions.pageCount else { return }
        }
    }

    /// Takes rows as they are in the store: the server's own changes, once they are durable.
    package func take(_ rows: [StoredSession]) {
        for row in rows {
            shard(of: row.id).put(LiveSession(row, place: places.number(of: row.app, row.platform)))
        }
    }

    /// Reads these sessions again, which a change of their account ended.
    package func take(_ ids: [SessionID]) throws(Fault) {
        for id in ids { if let row = try reader.session(id) { take([row]) } }
    }

    /// Forgets sessions that the store forgot.
    package func forget(_ ids: [SessionID]) {
        for id in ids { shard(of: id).remove(id) }
    }

    /// Sessions in memory, and how many of them have ended.
    package var counts: (all: Int, ended: Int) {
        shards.reduce((0, 0)) { ($0.0 + $1.count, $0.1 + $1.endedCount) }
    }

    /// First uses of renewed keys that are not known to be in the store.
    package var unsavedCount: Int { shards.reduce(0) { $0 + $1.unsaved.count } }

    /// Brings the first use of a renewed key to the store. What is not written is tried again by ``reconcile()``, which also
    /// finds the row once it is: here it is not known yet whether the disk has it.
    private func save(_ confirmation: SessionShard.Confirmation, of id: SessionID) {
        writer.writeLater { (store) throws(Fault) in
            guard let row = try store.session(id), row.end == nil,
                let next = row.credentials.confirmed(confirmation.epoch, at: confirmation.at)
            else { return }
            _ = try store.swap(id, row.credentials, for: next, at: max(row.used, confirmation.at))
        }
    }
}
