import CountersignWire

/// Where a server writes: changes wait in line, and those that wait together are made durable together, so that a disk's
/// delay is paid once for many. Loops await it and never wait for a disk themselves.
package protocol StoreWriter: Sendable {
    /// Runs `change` on the writer's thread, by itself; returns once it is durable. Refuses `unavailable` where the line is
    /// full or the store fails: then nothing of it is kept.
    nonisolated(nonsending) func write<Result: Sendable>(
        _ change: @escaping @Sendable (any Store) throws(Fault) -> Result
    ) async throws(Refusal) -> Result

    /// The same for what nobody waits for. What cannot be written is dropped.
    func writeLater(_ change: @escaping @Sendable (any Store) throws(Fault) -> Void)
}
