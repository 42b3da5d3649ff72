import ClientFakes
import CountersignWire
import Testing

@testable import CountersignClient

/// After any network faults in any order, the next call on an undisturbed network succeeds, or the session
/// has ended for a real reason.
@Suite struct RefreshModelTests {
    @Test func noHistoryLeavesAClientStuck() async throws {
        let histories = Histories("refreshes", 10, long: 100)
        let faults: Set = ["notSent", "lost", "doubled", "answeredBefore", "changed", "changedAndPassedOn"]
        var kinds: Set<String> = []
        var (steps, deaths, epochs) = (0, 0, 0)
        // Each fault occurs, and sessions survive them.
        let count = try await histories.run(until: { kinds == faults && deaths > 0 && epochs > 0 }) { drawn in
            let history = try await History(drawn)
            try await history.run()
            kinds.formUnion(await history.world.network.kinds)
            steps += history.steps
            deaths += history.deaths
            epochs += Int(await history.world.authority.session?.epoch ?? 0)
        }
        histories.report(count, steps: steps)
        #expect(kinds == faults && deaths > 0 && epochs > 0, "\(kinds), \(deaths) deaths, \(epochs) epochs")
    }
}

/// One device with two processes on its vault, and an attacker on the network.
private final class History {
    let name: String
    private(set) var world: FakeWorld
    private let vault = MemoryVault()
    private var random: SplitMix64
    /// Calls that ended with the process.
    private(set) var deaths = 0
    private(set) var steps = 0

    init(_ drawn: Histories.Drawn) async throws {
        name = drawn.name
        random = drawn.steps
        world = try await FakeWorld(vault)
        try await world.signUp()
        try await world.logIn()
    }

    func run() async throws {
        for round in 1...25 {
            for _ in 0..<Int.random(in: 1...5, using: &random) { try await step() }
            await world.network.calm()
            vault.failAfter(writes: .max)
            try await expectSuccess(round)
        }
        await world.authority.end("revoked")
        let last = world
        await #expect("\(name)") { try await last.calls.send(last.draft()) } throws: { error in
            guard case ClientOperationError.sessionEnded(let notice) = error else { return false }
            return notice.reason == "revoked"
        }
        #expect(try world.state.login == nil, "\(name)")
    }

    private func step() async throws {
        steps += 1
        switch Int.random(in: 0..<11, using: &random) {
        case 0: await pass(FakeSession.lifetime)
        case 1: await pass(31)
        case 2: world.time.set(by: Int64.random(in: -4_000...4_000, using: &random))
        case 3, 4:
            vault.failAfter(writes: Int.random(in: 0...4, using: &random))
            await call(times: 1)
            vault.failAfter(writes: .max)
        case 5: await call(times: 2)
        default:
            for _ in 0..<Int.random(in: 1...3, using: &random) {
                await world.network.plan(mischief(), at: Bool.random(using: &random) ? "/token" : "/orders")
            }
            await call(times: 1)
        }
    }

    private func pass(_ seconds: Int64) async {
        await world.pass(seconds)
    }

    private func mischief() -> FakeNetwork.Mischief {
        let code = ["unknown-key", "bad-signature", "replayed", "token-expired"].randomElement(using: &random)
        return switch Int.random(in: 0..<6, using: &random) {
        case 0: .notSent
        case 1: .lost
        case 2: .doubled
        case 3: .answeredBefore
        case 4: .changed(code ?? "")
        default: .changedAndPassedOn(code ?? "")
        }
    }

    /// Makes calls whose results do not matter.
    private func call(times: Int) async {
        let shared = world
        let died = await withTaskGroup(of: Bool.self) { group in
            for _ in 0..<times {
                group.addTask {
                    do {
                        _ = try await shared.calls.send(shared.draft("POST"))
                        return false
                    } catch {
                        guard case ClientOperationError.vaultFailed = error else { return false }
                        return true
                    }
                }
            }
            return await group.contains(true)
        }
        if died { deaths += 1 }
    }

    private func expectSuccess(_ round: Int) async throws {
        let place = "round \(round) of \(name)"
        do {
            #expect(try await world.calls.send(world.draft()).response.status == 200, "\(place)")
        } catch {
            Issue.record("\(place): \(error)")
        }
        #expect(await world.authority.session?.ended == nil, "\(place)")
        try #require(try world.state.login != nil, "\(place)")
    }
}
