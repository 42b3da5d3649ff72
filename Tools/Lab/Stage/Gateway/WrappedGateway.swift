import CountersignTestServer

/// A server that contains the gateway: operations apply to the gateway unless overridden.
protocol WrappedGateway: StagedServer {
    var gateway: GatewayServer { get }
}

extension WrappedGateway {
    package func copyDatabase() async throws -> [String] { try await gateway.copyDatabase() }

    package func restart() async throws { try await gateway.restart() }

    package func restartWithoutReplayFile() async throws -> Bool {
        try await gateway.restartWithoutReplayFile()
    }

    package func restartRestoringReplayFile() async throws { try await gateway.restartRestoringReplayFile() }

    package func startSecondNode() async throws -> SecondNodeOutcome { try await gateway.startSecondNode() }

    @discardableResult
    package func operate(_ words: [String], typing input: String) async throws(LabError) -> [UInt8] {
        try await gateway.operate(words, typing: input)
    }

    package func retire(_ key: AppKey) async throws -> RetirementOutcome { try await gateway.retire(key) }

    package func reinstate(_ key: AppKey) async throws { try await gateway.reinstate(key) }
}

/// The gateway with open routes, in front of a backend that has the users, passwords and tokens.
package final class OpenRouteServer: WrappedGateway {
    let gateway: GatewayServer
    private let backend: ReferenceServer

    /// Both must be running.
    package init(_ gateway: GatewayServer, before backend: ReferenceServer) {
        self.gateway = gateway
        self.backend = backend
    }

    package var port: UInt16 { gateway.port }
    package var tlsKey: String? { gateway.tlsKey }

    /// Copies both databases: the credentials are in the backend's.
    package func copyDatabase() async throws -> [String] {
        try await backend.copyDatabase() + gateway.copyDatabase()
    }

    package func restart() async throws {
        try await backend.restart()
        try await gateway.restart()
    }

    /// Unsupported: unsigned requests to an open route name no release.
    package func retire(_ key: AppKey) async throws -> RetirementOutcome { .unsupported }

    package func reinstate(_ key: AppKey) async throws {}

    package func stop() async {
        await gateway.stop()
        await backend.stop()
    }
}

/// nginx in front of a backend, and the gateway that it asks about each request. TLS ends at nginx. Source:
/// docs/protocol.md, "Decide", and Examples/decide.
package final class NginxDecideServer: WrappedGateway {
    let gateway: GatewayServer
    private let nginx: Nginx
    package let tlsKey: String?

    /// Adds the settings that let nginx ask the gateway.
    static func prepare(_ plan: inout GatewayServer.Plan) {
        plan.transport = .plain
        plan.words = ["--decide", "nginx", "--trusted-proxies", "127.0.0.1"]
    }

    /// Starts nginx in front of a running gateway whose plan ``prepare(_:)`` has changed.
    init(
        _ gateway: GatewayServer, before backend: UInt16, certificates authorities: StageCertificates,
        transport: RowProfile.Transport, folder: String, program: String?
    ) async throws(LabError) {
        guard let program else { throw LabError(Nginx.absence) }
        var pem: (certificate: [UInt8], key: [UInt8])?
        if transport != .plain {
            do {
                pem = try authorities.server.pem()
            } catch {
                throw LabError("the bank's certificate: \(error)")
            }
        }
        let (port, secret, certificate) = (gateway.port, try gateway.decideSecret(), pem)
        self.gateway = gateway
        tlsKey = pem.map { String(decoding: $0.key, as: UTF8.self) }
        nginx = try await DedicatedThread.run { () throws(LabError) in
            try Nginx(
                program: program, folder: folder, gateway: port, backend: backend, secret: secret,
                certificate: certificate)
        }
    }

    package var port: UInt16 { nginx.port }

    package func stop() async {
        await DedicatedThread.run { [nginx] in nginx.stop() }
        await gateway.stop()
    }
}
