import CountersignHTTP
import CountersignMemory
import Synchronization

/// A loop's connection to the server of a shared guard. Confined to its loop, except for `loop` and
/// `isConnected`.
protocol ReplayLoopClient: AnyObject, Sendable {
    associatedtype Grant: ReplayGrant
    associatedtype Insertion: Sendable

    var loop: EventLoop { get }
    /// Whether insertions can be sent. Thread-safe.
    var isConnected: Bool { get }
    /// Adapts the connection to the current grant.
    func prepare()
    /// Resumes the continuation with the outcome, within a bound.
    func insert(
        _ insertion: Insertion, resuming continuation: UnsafeContinuation<InsertionOutcome, Never>)
}

/// What the loop clients share: the insertions that wait, which end within ``InsertionQueue/patience``, and
/// of which all of one turn are sent together.
class WaitingInsertions<Grant: ReplayGrant, Entry>: @unchecked Sendable {
    final let loop: EventLoop
    final let grants: ReplayGrants<Grant>
    /// Called when the server may have lost entries, is another one, or is to be connected to.
    final let suspect: @Sendable () -> Void
    final let isUsable = Atomic(false)
    final var queue: InsertionQueue<Entry>
    final private(set) var timer: LoopTimer?
    private final var isSendScheduled = false

    init(on loop: EventLoop, grants: ReplayGrants<Grant>, suspect: @escaping @Sendable () -> Void) {
        (self.loop, self.grants, self.suspect) = (loop, grants, suspect)
        queue = InsertionQueue(patience: grants.patience)
        timer = LoopTimer(loop, milliseconds: InsertionQueue<Entry>.timerMilliseconds) { [unowned self] in
            endOverdue()
        }
    }

    final var isConnected: Bool { isUsable.load(ordering: .relaxed) }

    /// Sends the insertions of a turn.
    func send() {}

    /// Called every few milliseconds while insertions wait.
    func endOverdue() {}

    /// False if too many wait; then the continuation was resumed.
    final func append(
        _ entry: Entry, resuming continuation: UnsafeContinuation<InsertionOutcome, Never>
    ) -> Bool {
        guard queue.append(entry, resuming: continuation) else {
            continuation.resume(
                returning: .failed("too many insertions wait for \(grants.kind.title)"))
            return false
        }
        timer?.start()
        return true
    }

    final func scheduleSend() {
        guard !isSendScheduled else { return }
        isSendScheduled = true
        loop.perform { [self] in
            isSendScheduled = false
            send()
        }
    }

    final func stopTimerIfIdle() { if queue.count == 0 { timer?.stop() } }

    /// Whether the oldest insertion has waited for too long.
    final var isOverdue: Bool {
        stopTimerIfIdle()
        return queue.isOverdue
    }

    /// Why insertions end that the server has not answered in time.
    final var lateness: String { "\(grants.kind.title) took longer than \(queue.patience) ms" }
}

/// The clients of a guard's loops. Thread-safe.
final class ReplayLoopClients<Client: ReplayLoopClient>: Sendable {
    private let clients = Locked<[Client]>([])

    var all: [Client] { clients.with { $0 } }

    func add(_ client: Client) {
        clients.with { $0.append(client) }
        client.loop.perform { client.prepare() }
    }

    func prepareAll() {
        for client in all { client.loop.perform { client.prepare() } }
    }

    /// Inserts by the connection of the caller's loop, or of the first one if the caller is on none.
    func insert(_ insertion: Client.Insertion) async -> InsertionOutcome {
        let all = all
        guard let client = all.first(where: { $0.loop.isOnLoop }) ?? all.first else {
            return .failed("no loop runs yet")
        }
        if client.loop.isOnLoop {
            return await withUnsafeContinuation { client.insert(insertion, resuming: $0) }
        }
        return await withUnsafeContinuation { continuation in
            client.loop.perform { client.insert(insertion, resuming: continuation) }
        }
    }

    /// Why not every loop inserts; nil if each does.
    var failure: String? {
        let all = all
        let missing = all.filter { !$0.isConnected }.count
        return missing == 0 ? nil : "\(missing) of \(all.count) event loops have no connection"
    }
}
