import CountersignHandshake
import CountersignOpaque
import CountersignSchemes
import CountersignSeal
import CountersignVault
import CountersignWire
import Synchronization

@testable import CountersignClient

/// The way between client and authority, with somebody in it.
actor FakeNetwork {
    enum Mischief: Sendable {
        case notSent
        /// The authority gets it, and the answer is lost.
        case lost
        /// The answer is another one.
        case answered(@Sendable (Response) -> Response)
        /// The answer to the request before this one.
        case answeredBefore
        /// The authority gets it twice; the second answer arrives.
        case doubled
        /// The authority gets another one in its place, which it refuses.
        case changed(String)
        /// The same, and it gets the right one as well; the refusal arrives.
        case changedAndPassedOn(String)
        /// The answer is what a backend once said to another copy, given again by the authority.
        case repeated(String)
        /// The answer to an unsigned question with the same nonce.
        case unbound
    }

    let authority: FakeAuthority

    private var planned: [(path: String, mischief: Mischief)] = []
    private var before: Response?
    private(set) var sent: [Draft] = []
    /// How much mischief came about: a test of a fault shows that the fault happened.
    private(set) var done = 0
    /// The same, by kind.
    private(set) var kinds: Set<String> = []

    init(_ authority: FakeAuthority) { self.authority = authority }

    /// To the next request whose target has that in it.
    func plan(_ mischief: Mischief, at path: String) { planned.append((path, mischief)) }

    func calm() { planned = [] }

    func carry(_ draft: Draft) async throws -> Response {
        sent.append(draft)
        let target = String(decoding: draft.target, as: UTF8.self)
        var mischief: Mischief?
        if let index = planned.firstIndex(where: { target.contains($0.path) }) {
            mischief = planned.remove(at: index).mischief
            done += 1
            if let mischief { kinds.insert(mischief.name) }
        }
        if case .notSent? = mischief { throw TransportProblem(.notSent, "no connection") }
        if case .repeated(let code)? = mischief { return try await authority.repetition(of: code, to: draft) }
        if case .unbound? = mischief {
            return try await authority.unboundTime(String(target.split(separator: "=").last ?? ""))
        }
        if case .changed(let code)? = mischief { return try await authority.refusal(code, to: draft) }
        var response = try await authority.answer(draft)
        if case .doubled? = mischief { response = try await authority.answer(draft) }
        defer { before = response }
        switch mischief {
        case nil, .doubled, .notSent, .changed, .repeated, .unbound: return response
        case .changedAndPassedOn(let code): return try await authority.refusal(code, to: draft)
        case .lost: throw TransportProblem(.notKnown, "the connection broke")
        case .answered(let change): return change(response)
        case .answeredBefore: return before ?? response
        }
    }
}

struct FakeTransport: Transport {
    let network: FakeNetwork

    nonisolated(nonsending) func send(_ draft: Draft) async throws(TransportProblem) -> Response {
        do {
            return try await network.carry(draft)
        } catch {
            throw error as? TransportProblem ?? TransportProblem(.notKnown, "the authority failed: \(error)")
        }
    }
}

/// Clocks that are told what they say.
final class FakeTime: ClientTime {
    private struct Clocks {
        var wall: Int64 = 1_800_000_000
        var milliseconds: Int64 = 0
        /// Milliseconds between two looks at the monotonic clock.
        var delay: Int64 = 0
    }

    private let clocks = Mutex(Clocks())

    var now: Int64 { clocks.withLock { $0.wall } }

    var milliseconds: Int64 {
        clocks.withLock { clocks in
            clocks.milliseconds += clocks.delay
            return clocks.milliseconds
        }
    }

    /// Time goes by.
    func pass(_ seconds: Int64) {
        clocks.withLock { clocks in
            clocks.wall += seconds
            clocks.milliseconds += seconds * 1_000
        }
    }

    /// Somebody sets the device's clock.
    func set(by seconds: Int64) { clocks.withLock { $0.wall += seconds } }

    func delay(_ milliseconds: Int64) { clocks.withLock { $0.delay = milliseconds } }
}

/// A device, its authority and what lies between them.
struct FakeWorld {
    let authority: FakeAuthority
    let network: FakeNetwork
    let store: MemoryVault
    /// A process, as far as the client goes: what it has in memory.
    private(set) var keeper: StateKeeper
    let time = FakeTime()
    var installation: CountersignClient.Installation

    init(_ store: MemoryVault = MemoryVault()) async throws {
        authority = try FakeAuthority()
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

    private static func process(on vault: Vault) throws -> StateKeeper {
        StateKeeper(vault, try StateKeeper.item(host: host, app: nil))
    }

    /// The same device with another process on the same vault.
    func another() throws -> FakeWorld {
        var world = self
        world.keeper = try FakeWorld.process(on: store.vault)
        return world
    }

    /// The process ends, and another takes its place: what was in memory is gone.
    mutating func restart() throws { self = try another() }

    func use(_ vault: Vault) throws -> FakeWorld {
        var world = self
        world.keeper = try FakeWorld.process(on: vault)
        return world
    }

    /// Time goes by, for all.
    func pass(_ seconds: Int64) async {
        await authority.advance(by: seconds)
        time.pass(seconds)
    }

    var surroundings: Surroundings {
        Surroundings(
            transport: FakeTransport(network: network), keeper: keeper, time: time, random: SystemRandom())
    }

    var calls: SignedCalls { SignedCalls(installation, surroundings) }

    /// What the vault has.
    var state: ClientState { get throws { try another().keeper.look() } }

    static func password(_ text: String) throws -> Password {
        let bytes = Array(text.utf8)
        guard let password = Password(Secret(copying: bytes.span)) else { throw FakeAuthority.Problem.broken }
        return password
    }

    func signUp(
        _ name: String = "alice", _ password: String = "correct horse", resetCode: String? = nil
    ) async throws {
        let code = resetCode.map { Secret(copying: Array($0.utf8).span) }
        try await SignUp(installation, surroundings)(
            AccountName(normalizing: name), FakeWorld.password(password), resetCode: code)
    }

    @discardableResult
    func logIn(_ name: String = "alice", _ password: String = "correct horse") async throws -> SignedIn {
        guard let device = Device.Name("test") else { throw FakeAuthority.Problem.broken }
        return try await LogIn(installation, surroundings)(
            AccountName(normalizing: name), FakeWorld.password(password), on: .phone, named: device)
    }

    func draft(_ method: String = "GET", _ target: String = "/orders") -> Draft {
        Draft(method: method, target: Array(target.utf8), authority: installation.host)
    }
}

extension FakeNetwork.Mischief {
    var name: String { String("\(self)".prefix { $0 != "(" }) }
}
