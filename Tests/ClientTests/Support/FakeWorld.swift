import ClientFakes
import CountersignHandshake
import CountersignOpaque
import CountersignSchemes
import CountersignSeal
import CountersignVault
import CountersignWire

@testable import CountersignClient

/// A device, its authority and what lies between them.
struct FakeWorld {
    let authority: FakeAuthority
    let network: FakeNetwork
    let store: MemoryVault
    /// A process, as far as the client goes: what it has in memory.
    private(set) var keeper: StateKeeper
    let time = FakeTime()
    /// In place of the network itself.
    var transport: (any Transport)?
    /// The signer of a present user; nil for none.
    var signer: (any DeviceSigner)?
    /// Cheap in histories with many logins; other tests use the standard cost.
    var stretching = KeyStretchingFunction.standard
    /// The storage of device keys; applies from the next process on.
    var policy = DeviceKeyPolicy.software
    var installation: CountersignClient.Installation

    init(_ store: MemoryVault = MemoryVault()) async throws { try self.init(FakeAuthority(), store) }

    private init(_ authority: FakeAuthority, _ store: MemoryVault) throws {
        self.authority = authority
        network = FakeNetwork(authority)
        self.store = store
        keeper = try FakeWorld.process(on: store.vault)
        guard let id = authority.releaseID else { throw FakeAuthority.Problem.broken }
        installation = CountersignClient.Installation(
            host: FakeWorld.host, transport: .tls, release: Credentials(keyID: id, key: authority.release),
            userAgent: "test", channel: .open)
        installation.authorityKey = SigningKey(authority.answerKey.publicKey)
    }

    private static let host = "api.example.com"

    private static func process(
        on vault: Vault, deviceKeys policy: DeviceKeyPolicy = .software
    ) throws -> StateKeeper {
        StateKeeper(vault, item: try StateKeeper.item(host: host, app: nil), deviceKeys: policy)
    }

    /// The same device with another process on the same vault.
    func another() throws -> FakeWorld {
        var world = self
        world.keeper = try FakeWorld.process(on: store.vault, deviceKeys: policy)
        return world
    }

    /// Another device and authority that have come as far, and know nothing of these: a signed-in start
    /// without another login.
    func copy() async throws -> FakeWorld {
        let copied = MemoryVault()
        copied.contents = store.contents
        var world = try FakeWorld(await authority.copy(), copied)
        world.stretching = stretching
        return world
    }

    /// The process ends, and another takes its place: what was in memory is gone.
    mutating func restart() throws { self = try another() }

    func use(_ vault: Vault) throws -> FakeWorld {
        var world = self
        world.keeper = try FakeWorld.process(on: vault, deviceKeys: policy)
        return world
    }

    /// Time goes by, for all.
    func pass(_ seconds: Int64) async {
        await authority.advance(by: seconds)
        time.pass(seconds)
    }

    var environment: ClientEnvironment {
        var environment = ClientEnvironment(
            transport: transport ?? FakeTransport(network: network), keeper: keeper, time: time,
            random: SystemRandom())
        environment.signer = signer
        environment.stretching = stretching
        return environment
    }

    var calls: SignedCalls { SignedCalls(installation, environment: environment) }

    /// What the vault has.
    var state: PersistedState { get throws { try another().keeper.readVault() } }

    static func password(_ text: String) throws -> Password {
        let bytes = Array(text.utf8)
        guard let password = Password(Secret(copying: bytes.span)) else { throw FakeAuthority.Problem.broken }
        return password
    }

    /// The vault item with the private halves of the device's keys.
    func deviceKeyItem() throws -> DeviceKeyItem {
        let item = try store.vault.read(keeper.deviceKeys.item).get()
        guard let item, let keys = DeviceKeyItem(item.contents.secret) else {
            throw FakeAuthority.Problem.broken
        }
        return keys
    }

    /// The signing key that the vault has of the device, as its back end wrapped it: in software PKCS #8.
    func heldSigningKey() throws -> Secret {
        guard let keys = try state.keys, let signing = try deviceKeyItem()[keys.name]?.signing else {
            throw FakeAuthority.Problem.broken
        }
        return signing.wrapped
    }

    func signUp(
        _ name: String = "alice", _ password: String = "correct horse", resetCode: String? = nil
    ) async throws {
        let code = resetCode.map { Secret(copying: Array($0.utf8).span) }
        try await SignUp(installation, environment: environment)(
            AccountName(normalizing: name), password: FakeWorld.password(password), resetCode: code)
    }

    @discardableResult
    func logIn(
        _ name: String = "alice", _ password: String = "correct horse",
        keepingSigningKey place: SigningKeyPlace = .vault
    ) async throws -> ActiveLogin {
        guard let device = Device.Name("test") else { throw FakeAuthority.Problem.broken }
        return try await LogIn(installation, environment: environment)(
            AccountName(normalizing: name), password: FakeWorld.password(password), on: .phone, named: device,
            keepingSigningKey: place)
    }

    func draft(_ method: String = "GET", _ target: String = "/orders") -> Draft {
        Draft(method: method, target: Array(target.utf8), authority: installation.host)
    }
}
