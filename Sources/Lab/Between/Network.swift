/// What lies between a victim and its server: honest, or in the attacker's hand.
package final class Network: Sendable {
    /// Sends a request on a connection of the attacker's own.
    package func send(_ request: RawRequest) async throws -> RawResponse { throw StageFault("no network yet") }
}
