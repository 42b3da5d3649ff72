import ClientFakes
import CountersignSeal
import CountersignWire
import Testing

@testable import CountersignClient

/// A user, another device, another process and a faulty network act concurrently, in orders drawn from a
/// seed. In every order, no request is executed twice, a signed-out account stays signed out, and the shown
/// state equals the stored state.
@Suite struct LegacyModelTests {
    @Test("in any order", .timeLimit(.minutes(60)))
    func anyOrder() async throws {
        let histories = Histories("legacy", 100, long: 5_000)
        let count = try await histories.run { try await run($0) }
        histories.report(count, steps: count * LegacyModelTests.steps)
    }

    private static let steps = 30

    private func run(_ history: Histories.Drawn) async throws {
        var random = history.steps
        let name = history.name
        let world = try LegacyWorld()
        let other = try world.another()
        try await world.logIn()
        var tasks: [Task<Void, Never>] = []
        for number in 0..<LegacyModelTests.steps {
            let step = Int.random(in: 0..<12, using: &random)
            let account = Bool.random(using: &random) ? world.account : other
            tasks.append(
                Task {
                    switch step {
                    case 0: world.server.expire()
                    case 1: world.server.replace()
                    case 2: _ = try? await account.logOut()
                    case 3:
                        let password = Secret(copying: Array("pass word+1".utf8).span)
                        try? await account.logIn(OldServer.user.name, password: password)
                    case 4: world.server.change { $0.loses = ["/login/token.php"] }
                    case 5: world.server.change { $0.loses = ["/api"] }
                    case 6: _ = try? await account.resume()
                    default:
                        _ = try? await LegacyCalls(account).send(LegacyRenewalTests.draft("\(number)"))
                    }
                })
            for _ in 0..<Int.random(in: 0...3, using: &random) { await Task.yield() }
        }
        for task in tasks { await task.value }

        let done = world.server.done
        #expect(Set(done).count == done.count, "\(name): done twice: \(done)")
        let kept = try await world.kept().session
        let shown = await world.account.status
        if case .active? = shown {
            #expect(kept != nil, "\(name): shown as signed in, and nothing is kept")
        } else {
            #expect(kept == nil, "\(name): kept, and shown as \(String(describing: shown))")
        }

        // A renewal that is delayed until after the sign-out has no effect.
        try await world.logIn()
        world.server.change { $0.loses = [] }
        world.server.expire()
        let gate = OldServer.Gate("/login/token.php")
        world.server.change { $0.hold = gate }
        let late = Task { try? await world.post("late") }
        await gate.someoneWaits()
        try await (Bool.random(using: &random) ? world.account : other).logOut()
        gate.open()
        _ = await late.value
        #expect(world.items.contents.isEmpty, "\(name): brought back")
    }
}
