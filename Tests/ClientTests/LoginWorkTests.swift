import ClientFakes
import CountersignHandshake
import CountersignMemory
import CountersignSeal
import CountersignVault
import CountersignWire
import Testing
import Waiting

@testable import CountersignClient

/// Work for a login: done for the authority alone, in bounded time, and with the caller's cancellation.
@Suite struct LoginWorkTests {
    /// Each look at this clock finds it later.
    private final class PassingTime: ClientTime {
        private let passed = Locked<Int64>(0)
        private let step: Int64

        init(step: Int64) { self.step = step }

        var now: Int64 { 1_800_000_000 }
        var milliseconds: Int64 {
            passed.with { time in
                time += step
                return time
            }
        }
    }

    private func solver(step: Int64 = 1) async throws -> LoginWorkSolver {
        var environment = try await FakeWorld().environment
        environment.time = PassingTime(step: step)
        return LoginWorkSolver(environment: environment, budget: WorkBudget())
    }

    private func refusal(hashes: Int, isGenuine: Bool = true) -> ClientOperationError {
        var notice = RefusalNotice(status: 429)
        notice.code = "too-many-attempts"
        notice.isGenuine = isGenuine
        notice.work = WorkOffer(
            challenge: [1, 2, UInt8(hashes & 255)], puzzles: 4, hashes: hashes, expires: 1_800_000_090)
        return .refused(notice)
    }

    @Test("a genuine refusal with work is answered by a start with the solution")
    func solves() async throws {
        let attempts = Locked<[LoginWorkSolver.Members]>([])
        let error = refusal(hashes: 1_000)
        let done = try await solver().perform { (members) async throws(ClientOperationError) -> String in
            attempts.with { $0.append(members) }
            if members.isEmpty { throw error }
            return "started"
        }
        let members = attempts.with { $0 }
        #expect(done == "started" && members.map(\.count) == [0, 1])
        guard case .object(let work) = try #require(members.last?.first?.value),
            case .string(let text) = try #require(work.first { $0.name == "solution" }?.value)
        else {
            Issue.record("no solution")
            return
        }
        let puzzles = try #require(WorkPuzzles(challenge: [1, 2, 232], puzzles: 4, hashes: 1_000))
        #expect(puzzles.isSolved(by: Base64.decode(text, as: .url) ?? []))
    }

    @Test("a few challenges are solved, and no more")
    func bounded() async throws {
        let attempts = Locked(0)
        let error = refusal(hashes: 10)
        await #expect(throws: ClientOperationError.self) {
            try await solver().perform { (_) async throws(ClientOperationError) -> String in
                attempts.with { $0 += 1 }
                throw error
            }
        }
        #expect(attempts.with { $0 } == LoginWorkSolver.mostChallenges + 1)
    }

    @Test("no work is done for anybody else, and none that takes too long", arguments: [false, true])
    func declined(_ isGenuine: Bool) async throws {
        let attempts = Locked(0)
        let error = refusal(hashes: isGenuine ? WorkPuzzles.mostHashes : 10, isGenuine: isGenuine)
        await #expect(throws: ClientOperationError.self) {
            try await solver(step: 10).perform { (_) async throws(ClientOperationError) -> String in
                attempts.with { $0 += 1 }
                throw error
            }
        }
        #expect(attempts.with { $0 } == 1)
    }

    @Test("all challenges of a call share one time")
    func budget() async throws {
        // Each look at the clock finds it 2.5 s later, and each challenge takes two looks or more.
        let error = refusal(hashes: 2_000)
        let solver = try await solver(step: 2_500)
        let attempts = Locked(0)
        for _ in 0..<6 {
            await #expect(throws: ClientOperationError.self) {
                try await solver.perform { (_) async throws(ClientOperationError) -> String in
                    attempts.with { $0 += 1 }
                    throw error
                }
            }
        }
        #expect(solver.budget.left == 0)
        // Without the bound it were 24: each of the logins makes one attempt, and those that have time left
        // three more at most.
        #expect((7...14).contains(attempts.with { $0 }))
    }

    /// Looks at a lock at each look at the clock.
    private final class WatchingTime: ClientTime {
        let isFree = Locked<[Bool]>([])
        private let path: String

        init(_ path: String) { self.path = path }

        var now: Int64 { 1_800_000_000 }
        var milliseconds: Int64 {
            let lock = try? FileLock.take(path, within: .zero)
            lock?.release()
            isFree.with { $0.append(lock != nil) }
            return 0
        }
    }

    @Test("other processes can refresh while the device works for a login by password")
    func leaseIsFree() async throws {
        let folder = TestFolder()
        defer { folder.remove() }
        var world = try await FakeWorld()
        world = try world.use(Vault(world.store, locks: VaultLocks(folder: folder.path)))
        world.installation.authorityKey = nil
        world.installation.channel = .pinned
        await world.authority.putOnLadder("alice", "correct horse")
        let offer = #"{"challenge":"AAAA","puzzles":4,"hashes":2000,"expires":1800000090}"#
        let refusal = Array(#"{"code":"too-many-attempts","work":\#(offer)}"#.utf8)
        await world.network.plan(
            .answered { _ in Response(status: 429, fields: [], body: refusal) }, at: "/login/password")
        let time = WatchingTime("\(folder.path)/lease.lock")
        var environment = world.environment
        environment.time = time
        let name = try #require(Device.Name("test"))
        _ = try? await PasswordLogIn(world.installation, environment: environment)(
            AccountName(normalizing: "alice"), password: Secret(copying: Array("correct horse".utf8).span),
            on: .phone, named: name)
        let sent = await world.network.sent.count
        #expect(sent == 2, "the second with the solution")
        #expect(time.isFree.with { $0.contains(true) && $0.contains(false) }, "held for the requests alone")
    }

    @Test("cancellation ends the work")
    func cancelled() async throws {
        let solver = try await solver(step: 0)
        let error = refusal(hashes: WorkPuzzles.mostHashes)
        let isAsked = Locked(false)
        let task = Task {
            try await solver.perform { (_) async throws(ClientOperationError) -> String in
                isAsked.with { $0 = true }
                throw error
            }
        }
        await until("the request") { isAsked.with { $0 } }
        task.cancel()
        let result = await task.result
        guard case .failure(ClientOperationError.cancelled) = result else {
            Issue.record("\(result)")
            return
        }
    }

    @Test("a refusal's work is read within bounds", arguments: offerTable)
    func offers(_ row: (work: String, isRead: Bool)) {
        let body = Array(#"{"code":"too-many-attempts","work":\#(row.work)}"#.utf8)
        let notice = RefusalNotice(Response(status: 429, fields: [], body: body))
        #expect((notice.work != nil) == row.isRead)
    }
}

private let offerTable: [(work: String, isRead: Bool)] = [
    (#"{"challenge":"AAAA","puzzles":16,"hashes":8192,"expires":1800000000}"#, true),
    (#"{"challenge":"AAAA","puzzles":65,"hashes":8192,"expires":1800000000}"#, false),
    (#"{"challenge":"AAAA","puzzles":0,"hashes":8192,"expires":1800000000}"#, false),
    (#"{"challenge":"AAAA","puzzles":16,"hashes":4294967297,"expires":1800000000}"#, false),
    (#"{"challenge":"!","puzzles":16,"hashes":8192,"expires":1800000000}"#, false),
    (#"{"challenge":"AAAA","puzzles":16,"hashes":8192}"#, false), ("[]", false), ("null", false),
]
