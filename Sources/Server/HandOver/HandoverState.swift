import CountersignAuthority
import CountersignHTTP
import CountersignMemory
import CountersignWire
import Synchronization

/// Whether another process judges requests of the same deployment besides this one: a predecessor that
/// finishes its requests, or a successor that has taken over.
///
/// Safe to share: atomics, and a value under its lock.
final class HandoverState: Sendable {
    private let others = Atomic<Int>(0)
    private let isHandedOver = Atomic<Bool>(false)
    private let areOtherNodes = Atomic<Bool>(false)
    private let isHandingOverNow = Atomic<Bool>(false)
    private let waiters = Locked<[UnsafeContinuation<Void, Never>]>([])

    /// Set while another process may judge, run keyed requests and change sessions.
    var isShared: Bool { others.load(ordering: .acquiring) > 0 }

    /// Set while gateways on other data folders may run keyed requests and change sessions of the same store.
    var hasOtherNodes: Bool {
        get { areOtherNodes.load(ordering: .acquiring) }
        set { areOtherNodes.store(newValue, ordering: .releasing) }
    }

    func begin() { others.add(1, ordering: .acquiringAndReleasing) }

    func end() {
        others.subtract(1, ordering: .acquiringAndReleasing)
        tick()
    }

    /// Set from the request of a successor until it has ended, or this process has.
    var isHandingOver: Bool {
        get { isHandingOverNow.load(ordering: .acquiring) }
        set { isHandingOverNow.store(newValue, ordering: .releasing) }
    }

    /// Set while a successor accepts connections, and this server answers only on its open ones.
    var hasHandedOver: Bool {
        get { isHandedOver.load(ordering: .acquiring) }
        set { isHandedOver.store(newValue, ordering: .releasing) }
    }

    /// Waits before the store is asked again, which was done `attempts` times: about a tenth of a second for
    /// another process, and longer each time for other nodes, up to a second, as each attempt is a change of
    /// the store. Returns at once if there is neither.
    func pause(after attempts: Int) async {
        if hasOtherNodes, !isShared {
            try? await Task.sleep(nanoseconds: 20_000_000 * UInt64(min(attempts, 50)))
            return
        }
        await withUnsafeContinuation { continuation in
            let isWaiting = waiters.with { waiting in
                guard isShared else { return false }
                waiting.append(continuation)
                return true
            }
            if !isWaiting { continuation.resume() }
        }
    }

    /// Ends the waits. The thread that watches the other process calls this ten times a second.
    func tick() {
        let served = waiters.with { waiting in
            defer { waiting = [] }
            return waiting
        }
        for continuation in served { continuation.resume() }
    }
}

/// A store writer that, while another process serves the same deployment, signals each change to it before
/// confirming the change to its caller.
struct HandoverStoreWriter: StoreWriter {
    let writer: any StoreWriter
    let generation: DeploymentGeneration
    let handOver: HandoverState

    func write<Result: Sendable>(
        _ change: @escaping @Sendable (any Store) throws(OperationalError) -> Result
    ) async throws(Refusal) -> Result {
        let result = try await writer.write(change)
        if handOver.isShared { generation.advance() }
        return result
    }

    func writeLater(_ change: @escaping @Sendable (any Store) throws(OperationalError) -> Void) {
        guard handOver.isShared else { return writer.writeLater(change) }
        Task.detached { try? await write(change) }
    }
}
