import CountersignHTTP
import CountersignMemory

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
