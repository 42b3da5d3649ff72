/// Our gateway with its routes open, and behind it the backend that has the users, the passwords and the tokens.
package final class OpenRouteServer: WrappedGateway {
    let gateway: GatewayServer
    private let backend: ReferenceServer

    /// Both run already.
    package init(_ gateway: GatewayServer, before backend: ReferenceServer) {
        self.gateway = gateway
        self.backend = backend
    }

    package var port: UInt16 { gateway.port }
    package var tlsKey: String? { gateway.tlsKey }

    /// Of both: what opens accounts is the backend's.
    package func stolenDatabase() async throws -> [String] {
        try await backend.stolenDatabase() + gateway.stolenDatabase()
    }

    package func restart() async throws {
        try await backend.restart()
        try await gateway.restart()
    }

    /// Whoever calls an open route without a signature names no release, so there is none to retire.
    package func retire(_ key: AppKey) async throws -> Retiring { .isNotKnownHere }

    package func bringBack(_ key: AppKey) async throws {}

    package func stop() async {
        await gateway.stop()
        await backend.stop()
    }
}
