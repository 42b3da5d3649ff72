import CountersignClient
import CountersignHandshake
import CountersignMemory
import CountersignSchemes
import CountersignSeal
import CountersignTransport
import CountersignVault
import CountersignWire

/// A holder of a vault, and the process of the client that runs on it.
final class ModelDevice: @unchecked Sendable {
    let name: String
    let vault: ModelVault
    private let time: ModelTime
    private let server: ModelServer
    private unowned let network: ModelNetwork
    private(set) var process = ModelProcess()
    private(set) var keeper: StateKeeper
    private var calls: SignedCalls
    private var signOut: LogOut

    /// `skew` is by how many seconds the device's clock is ahead.
    init(_ name: String, vault: ModelVault, skew: Int64, network: ModelNetwork) throws(ClientOperationError) {
        (self.name, self.vault, self.network, server) = (name, vault, network, network.server)
        time = ModelTime(clock: network.server.clock, skew: skew)
        (keeper, calls, signOut) = try ModelDevice.start(vault, process, name, time, network)
    }

    private static func start(
        _ vault: ModelVault, _ process: ModelProcess, _ name: String, _ time: ModelTime,
        _ network: ModelNetwork
    ) throws(ClientOperationError) -> (StateKeeper, SignedCalls, LogOut) {
        let server = network.server
        let keeper = StateKeeper(
            vault.vault(for: process),
            item: try StateKeeper.item(host: ModelServer.authority, app: nil))
        var installation = Installation(
            host: ModelServer.authority, transport: .tls, release: server.release, userAgent: "model",
            channel: .open)
        installation.authorityKey = SigningKey(server.answerKey.publicKey)
        let environment = ClientEnvironment(
            transport: ModelTransport(network: network, process: process, sender: name), keeper: keeper,
            time: time, random: SystemRandom())
        return (
            keeper, SignedCalls(installation, environment: environment),
            LogOut(installation, environment: environment)
        )
    }

    /// Another process takes the place of this one: what was in memory is gone.
    func restart() throws(ClientOperationError) {
        process.kill()
        process = ModelProcess()
        (keeper, calls, signOut) = try ModelDevice.start(vault, process, name, time, network)
    }

    /// The session in the vault; nil if the device is signed out.
    var session: DeviceSession? {
        let reader = StateKeeper(
            vault.vault(for: ModelProcess()), item: ModelDevice.item ?? keeperItem)
        guard case .device(let session)? = try? reader.readVault().login?.session else { return nil }
        return session
    }

    private static let item = try? StateKeeper.item(host: ModelServer.authority, app: nil)
    private var keeperItem: ItemName { preconditionFailure("model: the item's name") }

    func renew() async throws(ClientOperationError) { try await calls.renew() }

    /// Also for a device that has signed out and has the server yet to tell.
    func logOut() async throws(ClientOperationError) -> LogOut.Outcome { try await signOut() }

    func call(_ method: String) async throws(ClientOperationError) -> VerifiedResponse {
        try await calls.send(
            Draft(method: method, target: Array("/orders".utf8), authority: ModelServer.authority))
    }
}

/// The device's clock, beside the server's by a constant; and a monotonic clock.
private struct ModelTime: ClientTime {
    let clock: ModelClock
    let skew: Int64

    var now: Int64 { clock.now + skew }
    var milliseconds: Int64 { (clock.now - ModelClock.start) * 1_000 }
}

private struct ModelTransport: Transport {
    let network: ModelNetwork
    let process: ModelProcess
    let sender: String

    func send(_ draft: Draft) async throws(TransportError) -> Response {
        guard !process.isOver else { throw TransportError(.offline, fate: .notSent) }
        return try await network.carry(draft, from: sender, process: process)
    }
}
