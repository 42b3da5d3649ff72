import CountersignAuthority
import CountersignWire

/// A store's writer that tells another process of each change while there is one that serves the same
/// deployment, before the change is confirmed to its caller.
struct SharedWriter: StoreWriter {
    let writer: any StoreWriter
    let generation: Generation
    let handOver: HandOver

    nonisolated(nonsending) func write<Result: Sendable>(
        _ change: @escaping @Sendable (any Store) throws(Fault) -> Result
    ) async throws(Refusal) -> Result {
        let result = try await writer.write(change)
        if handOver.isShared { generation.advance() }
        return result
    }

    func writeLater(_ change: @escaping @Sendable (any Store) throws(Fault) -> Void) {
        guard handOver.isShared else { return writer.writeLater(change) }
        Task.detached { try? await write(change) }
    }
}
