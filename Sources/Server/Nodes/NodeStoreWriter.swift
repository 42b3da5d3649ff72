import CountersignAuthority
import CountersignWire

/// A store writer that confirms a change to its caller once every live node follows it: a session that has
/// ended has ended everywhere, and a new one is known at each node that its client may ask next.
struct NodeStoreWriter: StoreWriter {
    let writer: any StoreWriter
    /// Nil where the store has no other nodes.
    let membership: NodeMembership?

    func write<Result: Sendable>(
        _ change: @escaping @Sendable (any Store) throws(OperationalError) -> Result
    ) async throws(Refusal) -> Result {
        let result = try await writer.write(change)
        try await membership?.settle()
        return result
    }

    func writeLater(_ change: @escaping @Sendable (any Store) throws(OperationalError) -> Void) {
        writer.writeLater(change)
    }
}
