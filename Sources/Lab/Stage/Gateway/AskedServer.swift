import CountersignTestKit

/// nginx in front of a backend, and beside it our gateway, which it asks about each request. TLS ends at nginx.
/// Source: docs/protocol.md, "Decide", and Examples/decide.
package final class AskedServer: WrappedGateway {
    let gateway: GatewayServer
    private let nginx: Nginx
    package let tlsKey: String?

    /// What the gateway is to be started with, for nginx to ask it.
    static func prepare(_ plan: inout GatewayServer.Plan) {
        plan.transport = .plain
        plan.words = ["--decide", "nginx", "--trusted-proxies", "127.0.0.1"]
    }

    /// Starts nginx before a gateway that runs, and that ``prepare(_:)`` has seen.
    init(
        _ gateway: GatewayServer, before backend: UInt16, _ authorities: Authorities,
        _ transport: RowProfile.Transport, folder: String, program: String?
    ) async throws(StageFault) {
        guard let program else { throw StageFault(Nginx.absence) }
        var pem: (certificate: [UInt8], key: [UInt8])?
        if transport != .plain {
            do {
                pem = try authorities.server.pem()
            } catch {
                throw StageFault("the bank's certificate: \(error)")
            }
        }
        let (port, secret, certificate) = (gateway.port, try gateway.decideSecret(), pem)
        self.gateway = gateway
        tlsKey = pem.map { String(decoding: $0.key, as: UTF8.self) }
        nginx = try await Blocking.run { () throws(StageFault) in
            try Nginx(
                program: program, folder: folder, gateway: port, backend: backend, secret: secret,
                certificate: certificate)
        }
    }

    package var port: UInt16 { nginx.port }

    package func stop() async {
        await Blocking.run { [nginx] in nginx.stop() }
        await gateway.stop()
    }
}
