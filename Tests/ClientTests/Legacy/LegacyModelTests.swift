import CountersignSeal
import CountersignWire
import Foundation
import Testing

@testable import CountersignClient

/// What a user, another device, another process and a bad network do at once, in orders that a seed draws. Whatever the order: nothing is
/// done twice, who has signed out stays signed out, and what is shown is what is kept.
@Suite struct LegacyModelTests {
    /// `COUNTERSIGN_SEED` replays one run; `COUNTERSIGN_LONG=1` makes it many more.
    static let seeds: Range<UInt64> = {
        let environment = ProcessInfo.processInfo.environment
        if let seed = environment["COUNTERSIGN_SEED"].flatMap(UInt64.init) { return seed..<seed + 1 }
        return 0..<(environment["COUNTERSIGN_LONG"] == "1" ? 5_000 : 200)
    }()

    @Test("in any order", .timeLimit(.minutes(1)))
    func anyOrder() async throws {
        for seed in LegacyModelTests.seeds { try await run(seed) }
    }

    private func run(_ seed: UInt64) async throws {
        var draw = Draw(seed)
        let world = try LegacyWorld()
        let other = try world.another()
        try await world.logIn()
        var tasks: [Task<Void, Never>] = []
        for number in 0..<30 {
            let step = draw.next(below: 12)
            let account = draw.next(below: 2) == 0 ? world.account : other
            tasks.append(
                Task {
                    switch step {
                    case 0: world.server.expire()
                    case 1: world.server.replace()
                    case 2: try? await account.logOut()
                    case 3:
                        let password = Secret(copying: Array("pass word+1".utf8).span)
                        try? await account.logIn(OldServer.user.name, password)
                    case 4: world.server.change { $0.loses = ["/login/token.php"] }
                    case 5: world.server.change { $0.loses = ["/api"] }
                    case 6: _ = try? await account.resume()
                    default:
                        _ = try? await LegacyCalls(account).send(LegacyRenewalTests.draft("\(number)"))
                    }
                })
            for _ in 0..<draw.next(below: 4) { await Task.yield() }
        }
        for task in tasks { await task.value }

        let done = world.server.done
        #expect(Set(done).count == done.count, "seed \(seed): done twice: \(done)")
        let kept = try await world.kept().session
        let shown = await world.account.standing
        if case .active? = shown {
            #expect(kept != nil, "seed \(seed): shown as signed in, and nothing is kept")
        } else {
            #expect(kept == nil, "seed \(seed): kept, and shown as \(String(describing: shown))")
        }

        // A renewal that is held while the user signs out comes too late.
        try await world.logIn()
        world.server.change { $0.loses = [] }
        world.server.expire()
        let gate = OldServer.Gate("/login/token.php")
        world.server.change { $0.hold = gate }
        let late = Task { try? await world.post("late") }
        await gate.someoneWaits()
        try await (draw.next(below: 2) == 0 ? world.account : other).logOut()
        gate.open()
        _ = await late.value
        #expect(world.items.contents.isEmpty, "seed \(seed): brought back")
    }
}

/// SplitMix64. Source: Steele, Lea, Flood, "Fast Splittable Pseudorandom Number Generators", 2014.
private struct Draw {
    private var state: UInt64

    init(_ seed: UInt64) { state = seed }

    mutating func next(below bound: Int) -> Int {
        state &+= 0x9E37_79B9_7F4A_7C15
        var mixed = state
        mixed = (mixed ^ (mixed >> 30)) &* 0xBF58_476D_1CE4_E5B9
        mixed = (mixed ^ (mixed >> 27)) &* 0x94D0_49BB_1331_11EB
        return Int((mixed ^ (mixed >> 31)) % UInt64(bound))
    }
}
