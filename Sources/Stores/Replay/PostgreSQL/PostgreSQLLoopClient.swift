import CountersignHTTP
import CountersignSQL
import CountersignWire
import Synchronization

/// The grant of the guard on PostgreSQL.
struct PostgreSQLReplayGrant: ReplayGrant {
    let epoch: ReplayEpoch
    /// The minutes of creation times that have a table.
    let minutes: Set<Int64>
}

/// A loop's connection to PostgreSQL. It sends all waiting insertions as one transaction when the previous
/// transaction has ended. Confined to the loop, and safe to share for that reason.
///
/// After an insertion that took too long, insertions fail at once until the server responds. If it does not
/// respond in time, the client closes the connection.
final class PostgreSQLLoopClient: InsertionQueue<PostgreSQLReplayGrant, PostgreSQLLoopClient.Insertion>,
    ReplayLoopClient, @unchecked Sendable
{
    typealias Grant = PostgreSQLReplayGrant

    struct Insertion: Sendable {
        let name: PostgreSQLEntryName
        /// The node's clock.
        let now: Int64
        let grant: PostgreSQLReplayGrant
    }

    /// Nanoseconds for which a server that is late is waited for.
    private static let mostLateness: Int64 = 2_000_000_000
    private static let mostTogether = 512

    private var connection: ReplayEntryConnection?
    private var watcher: LoopDescriptor?
    /// The number of the first insertions of the queue that were sent, and what was sent.
    private var sent = 0
    private var batches: [ReplayEntryConnection.Batch] = []
    /// When the insertions that were sent last were given up; nil if they were not.
    private var lateSince: Int64?
    private let isWanting = Atomic(true)

    /// Whether a connection is to be opened for the loop. Thread-safe.
    var wantsConnection: Bool { isWanting.load(ordering: .relaxed) }

    /// Hands over a connection that was just opened. Thread-safe.
    func take(_ connection: ReplayEntryConnection) {
        isWanting.store(false, ordering: .relaxed)
        loop.perform { [self] in
            disconnect(because: "PostgreSQL is connected anew")
            self.connection = connection
            watcher = LoopDescriptor(loop, descriptor: connection.descriptor) { [unowned self] in read() }
            prepare()
        }
    }

    /// Gives up a connection to another data set than the epoch's.
    func prepare() {
        guard let connection else { return }
        guard let epoch = grants.grant?.epoch, epoch.identity == connection.source else {
            close(because: "PostgreSQL has another data set than the epoch's")
            return
        }
        isUsable.store(lateSince == nil, ordering: .relaxed)
    }

    func insert(
        _ insertion: Insertion, resuming continuation: UnsafeContinuation<InsertionOutcome, Never>
    ) {
        guard let connection, connection.source == insertion.grant.epoch.identity else {
            return continuation.resume(returning: .failed("PostgreSQL is away"))
        }
        guard lateSince == nil else {
            return continuation.resume(returning: .failed("PostgreSQL does not answer"))
        }
        guard append(insertion, resuming: continuation), sent == 0 else { return }
        scheduleSend()
    }

    /// Sends the insertions that wait, up to the first one for another epoch.
    override func send() {
        guard sent == 0, lateSince == nil, let connection, let first = waiting.first else { return }
        let epoch = first.entry.grant.epoch
        let together = waiting.prefix(PostgreSQLLoopClient.mostTogether).prefix {
            $0.entry.grant.epoch.token == epoch.token
        }
        batches = PostgreSQLEntryName.batches(of: together.map { $0.entry.name })
        sent = together.count
        do throws(OperationalError) {
            let isSent = try connection.insert(
                batches, epoch: epoch.token, now: first.entry.now,
                clockTolerance: ReplayEpoch.clockTolerance)
            if !isSent { watcher?.awaitWriting() }
        } catch {
            fail(error)
        }
    }

    /// Takes what has arrived, and sends what the socket had no room for.
    private func read() {
        guard let connection else { return }
        do throws(OperationalError) {
            if try !connection.flush() { watcher?.awaitWriting() }
            guard let outcomes = try connection.takeOutcomes() else { return }
            endSent(by: outcomes)
        } catch {
            fail(error)
        }
        send()
    }

    private func endSent(by outcomes: [ReplayEntryConnection.Outcome]) {
        if lateSince != nil {
            // Those that were sent have failed already.
            lateSince = nil
            isUsable.store(true, ordering: .relaxed)
            return
        }
        let isCurrent = outcomes.count == batches.count && outcomes.allSatisfy(\.isCurrent)
        var inserted: Set<PostgreSQLEntryName> = []
        for (batch, outcome) in zip(batches, outcomes) {
            inserted.formUnion(PostgreSQLEntryName.names(in: outcome.inserted, of: batch.minute))
        }
        let count = sent
        sent = 0
        for _ in 0..<count {
            guard let name = waiting.first?.entry.name else { break }
            let outcome: InsertionOutcome =
                if !isCurrent {
                    .failed("PostgreSQL has another epoch, or its clock differs from this machine's")
                } else if inserted.remove(name) != nil {
                    .inserted
                } else {
                    .present
                }
            _ = endFirst(outcome)
        }
        if !isCurrent { suspect() }
    }

    /// Of a transaction that failed, or of the connection.
    private func fail(_ error: OperationalError) {
        guard connection?.isBroken ?? true else {
            // A table was dropped meanwhile, or the disk is full.
            (lateSince, sent) = (nil, 0)
            endAll(because: error.message)
            isUsable.store(true, ordering: .relaxed)
            return suspect()
        }
        close(because: error.message)
    }

    override func endOverdue() {
        if let lateSince {
            guard EventLoop.nanoseconds() - lateSince > PostgreSQLLoopClient.mostLateness else { return }
            return close(because: "PostgreSQL does not answer")
        }
        guard isOverdue else { return }
        // Without anything on the way, nothing is late: the loop itself was.
        if sent > 0 {
            lateSince = EventLoop.nanoseconds()
            isUsable.store(false, ordering: .relaxed)
        }
        sent = 0
        endAll(because: lateness)
    }

    /// Ends the connection, and has another one opened.
    private func close(because reason: String) {
        disconnect(because: reason)
        isWanting.store(true, ordering: .relaxed)
        suspect()
    }

    private func disconnect(because reason: String) {
        watcher?.end()
        (watcher, connection, lateSince, sent) = (nil, nil, nil, 0)
        isUsable.store(false, ordering: .relaxed)
        endAll(because: reason)
    }
}
