import ClientFakes
import CountersignOpaque
import CountersignWire
import Synchronization
import TestRounds
import Testing

@testable import CountersignClient
import CountersignTransport

/// Two processes on one vault call, refresh, sign in and sign out concurrently; each is sometimes killed
/// between two steps. In every interleaving, no request is executed twice or in another account's name, no
/// ended session returns, no session ends without a cause, and the next call on an undisturbed network
/// reports the true state.
@Suite struct InterleavingTests {
    @Test func noInterleavingBreaksWhatHolds() async throws {
        let histories = Histories("interleavings", 500, long: 5_000)
        let start = try await Interleaving.start()
        let events = [
            "called", "signed in", "signed out", "forgotten", "killed", "killed at a write", "lost",
            "revoked", "refreshed", "signed out in between", "signed in in between", "forgotten in between",
            "called in between",
        ]
        var (tally, steps, number): ([String: Int], Int, Int) = ([:], 0, 0)
        let count = try await histories.run(until: { events.allSatisfy { tally[$0] != nil } }) { drawn in
            // Most histories are short, to test the effect of one step on the next; some are long, to test
            // accumulation.
            let length = isLongRun || number % 50 == 0 ? 25 : 2
            let history = try await Interleaving(drawn, from: start)
            try await history.run(steps: length)
            (steps, number) = (steps + length, number + 1)
            tally.merge(history.tally) { $0 + $1 }
        }
        histories.report(count, steps: steps)
        for event in events { #expect(tally[event, default: 0] > 0, "\(event)") }
    }
}

private final class Interleaving: Sendable {
    private struct Actors {
        var worlds: [FakeWorld]
        var processes: [FakeProcess]
        var spawned: [Task<Void, Never>] = []
        var tally: [String: Int] = [:]
        /// Sessions that were signed out or forgotten here.
        var gone: Set<SessionID> = []
        /// The latest epoch seen of each session.
        var epochs: [SessionID: UInt32] = [:]
        /// Whether an event since the last login may have ended the session.
        var mayBeOver = false
        var marks = 0
        var random: SplitMix64
    }

    private let name: String
    private let origin: FakeWorld
    private let actors: Mutex<Actors>

    var tally: [String: Int] { actors.withLock { $0.tally } }

    /// Two accounts, of which one is signed in.
    static func start() async throws -> FakeWorld {
        var world = try await FakeWorld()
        world.stretching = try #require(
            KeyStretchingFunction.argon2id(
                memory: 8, passes: 1, lanes: 1, salt: [UInt8](repeating: 0, count: 16)))
        try await world.signUp("alice")
        try await world.signUp("bob")
        try await world.logIn("alice")
        return world
    }

    init(_ drawn: Histories.Drawn, from start: FakeWorld) async throws {
        name = drawn.name
        origin = try await start.copy()
        let processes = [FakeProcess(0), FakeProcess(1)]
        actors = Mutex(
            Actors(worlds: try processes.map(origin.mortal), processes: processes, random: drawn.steps))
    }

    func run(steps: Int) async throws {
        for number in 1...steps { try await step("step \(number) of \(name)") }
        let refreshes = await origin.authority.refreshes
        count("refreshed", refreshes)
    }

    // MARK: - A step

    private func step(_ place: String) async throws {
        let who = pick(0...1)
        if pick(0...2) == 0 { await origin.pass(pick(0...3) == 0 ? 31 : FakeSession.lifetime) }
        if pick(0...5) == 0 { origin.time.set(by: Int64(pick(-90_000...90_000))) }
        for _ in 0..<pick(0...3) { await planEvent() }
        if pick(0...4) == 0 {
            actors.withLock { $0.processes[who] }.kill(
                pick(0...1) == 0 ? .before : .after, write: pick(0...2))
            count("killed at a write")
        }
        await act(who)
        await settle()
        await origin.network.calm()
        try revive()
        try await check(place)
    }

    /// Waits for the tasks started in between, and for the tasks that those started.
    private func settle() async {
        while let task = actors.withLock({ $0.spawned.popLast() }) { await task.value }
    }

    /// A random action; its result does not matter.
    private func act(_ who: Int) async {
        let isSignedIn = (try? origin.state.login) != nil
        switch pick(isSignedIn ? 0...15 : 15...15) {
        case 0...10: await call(who, "called", .alone)
        case 11, 12:
            // Two concurrent calls of one process, and one of the other.
            let others = [who, 1 - who].map { who in Task { await self.call(who, "called") } }
            await call(who, "called")
            for other in others { await other.value }
        case 13: await signOut(who, "signed out")
        case 14: forget(who, "forgotten")
        default: try? await signIn(who, "signed in")
        }
    }

    private func planEvent() async {
        let path = ["/token", "/token", "/orders", "/login/finish", "/logout"][pick(0...4)]
        let event: FakeNetwork.Mischief =
            switch pick(0...9) {
            case 0: .lost
            case 1: .notSent
            case 2: .doubled
            case 3...7:
                pick(0...1) == 0
                    ? .before { try await self.interfere() } : .meanwhile { try await self.interfere() }
            default:
                pick(0...1) == 0 ? .before { try self.killOne() } : .meanwhile { try self.killOne() }
            }
        if case .lost = event { count("lost") }
        await origin.network.plan(event, at: path)
    }

    /// While a request of one process is in transit, the other one completes an action.
    private func interfere() async throws {
        let who = pick(0...1)
        switch pick(0...5) {
        case 0: spawn { await self.signOut(who, "signed out in between") }
        case 1: forget(who, "forgotten in between")
        case 2: spawn { try? await self.signIn(who, "signed in in between") }
        case 3:
            await origin.authority.end("revoked")
            mark("revoked")
        default: spawn { await self.call(who, "called in between") }
        }
    }

    /// Does not wait for a body that may wait for the delayed refresh.
    private func spawn(_ body: @escaping @Sendable () async -> Void) {
        let task = Task { await body() }
        actors.withLock { $0.spawned.append(task) }
    }

    private func killOne() throws {
        let process = actors.withLock { $0.processes }[pick(0...1)]
        process.kill()
        count("killed")
        throw TransportError(.connectionLost("the process was killed"), fate: .outcomeUnknown)
    }

    private func revive() throws {
        for (number, process) in actors.withLock({ $0.processes }).enumerated() {
            process.spare()
            guard process.isOver else { continue }
            let fresh = FakeProcess(number)
            let world = try origin.mortal(fresh)
            actors.withLock { actors in
                actors.processes[number] = fresh
                actors.worlds[number] = world
            }
        }
    }

    // MARK: - What processes do

    private func world(_ who: Int) -> FakeWorld { actors.withLock { $0.worlds[who] } }

    /// Whether another account may sign in between reading the signed-in account and the call.
    private enum Company { case alone, others }

    private func call(_ who: Int, _ event: String, _ company: Company = .others) async {
        let world = world(who)
        count(event)
        let account = (try? world.keeper.state().login ?? world.keeper.readVault().login)?.account.description
        var draft = world.draft("POST")
        let wish = "wish-\(UInt64.random(in: 0...UInt64.max))"
        draft.setField("Idempotency-Key", to: wish)
        let answered = try? await world.calls.send(draft)
        let doneFor = await origin.authority.doneFor[wish]
        #expect(doneFor == nil || doneFor == account || company == .others, "\(name): done in another's name")
        if let answered, answered.response.status == 200, !world.isReplay(answered) {
            #expect(await origin.authority.done[wish] == 1, "\(name)")
        }
    }

    private func signOut(_ who: Int, _ event: String) async {
        let world = world(who)
        let before = try? world.keeper.readVault().login?.id
        mark(event)
        // The sign-out may have reached a session that began meanwhile.
        defer { mark() }
        guard case .signedOut? = try? await LogOut(world.installation, environment: world.environment)()
        else { return }
        if let before { actors.withLock { _ = $0.gone.insert(before) } }
    }

    private func forget(_ who: Int, _ event: String) {
        let world = world(who)
        let before = try? world.keeper.readVault().login?.id
        mark(event)
        defer { mark() }
        guard (try? LogOut(world.installation, environment: world.environment).forgetHere()) != nil,
            let before
        else {
            return
        }
        actors.withLock { _ = $0.gone.insert(before) }
    }

    private func signIn(_ who: Int, _ event: String) async throws {
        count(event)
        let before = actors.withLock { actors in
            actors.mayBeOver = true
            return actors.marks
        }
        try await world(who).logIn(pick(0...2) == 0 ? "bob" : "alice")
        actors.withLock { $0.mayBeOver = $0.marks != before }
    }

    // MARK: - What holds

    private func check(_ place: String) async throws {
        let authority = origin.authority
        #expect(await authority.session?.ended != "reused", "\(place)")
        let (done, wishes) = (await authority.done, await authority.done.count)
        #expect(
            done[""] == nil && done.values.allSatisfy { $0 == 1 },
            "\(place): \(wishes) wishes, one done twice")
        if let login = try origin.state.login { try see(login, place) }
        for who in [0, 1] { try await checkCall(of: who, place) }
    }

    /// Checks that a call on an undisturbed network reports the true state, as far as its process can know
    /// it: changes of another process show when a call is refused.
    private func checkCall(of who: Int, _ place: String) async throws {
        let world = world(who)
        let known = try world.keeper.state().login
        let kept = try origin.state.login
        let login = known ?? kept
        let session = await origin.authority.session
        let isCurrent = login != nil && session?.id == login?.id && session?.ended == nil
        do {
            let answered = try await world.calls.send(world.draft())
            let now = try world.keeper.state().login
            #expect(answered.response.status == 200, "\(place): \(answered.notice?.code ?? "")")
            // What another process has forgotten may show during the call, or when one is refused.
            let isForgotten = kept == nil && now == nil
            #expect(
                isForgotten || now?.id == session?.id && now?.account == login?.account,
                """
                \(place): not the one who is signed in: before the call \(describe(known)) known here, \
                \(describe(kept)) stored; after it \(describe(now)); at the authority \(describe(session))
                """)
        } catch {
            switch error {
            case .notSignedIn: #expect(kept == nil, "\(place)")
            case .accountChanged: #expect(kept != nil && kept?.account != known?.account, "\(place)")
            case .sessionEnded(let notice):
                // A log-out that is stored here may reach the server at any time.
                #expect(!isCurrent || kept?.id != login?.id, "\(place): \(error)")
                #expect(["replaced", "revoked", "signed-out"].contains(notice.reason), "\(place): \(notice)")
            default: Issue.record("\(place): \(error)")
            }
            let mayBeOver = actors.withLock { $0.mayBeOver }
            #expect(mayBeOver || session?.id != login?.id, "\(place): signed out without a cause")
        }
    }

    private func describe(_ login: ActiveLogin?) -> String {
        login.map { "\($0.account) in \($0.id)" } ?? "nobody"
    }

    private func describe(_ session: FakeSession?) -> String {
        session.map { "\($0.id), ended: \($0.ended ?? "no")" } ?? "no session"
    }

    private func see(_ login: ActiveLogin, _ place: String) throws {
        guard case .device(let session) = login.session else { return }
        actors.withLock { actors in
            #expect(!actors.gone.contains(login.id), "\(place): brought back")
            #expect(
                session.current.number >= actors.epochs[login.id, default: 0], "\(place): an epoch went back")
            actors.epochs[login.id] = session.current.number
        }
    }

    // MARK: - Chance

    private func pick(_ range: ClosedRange<Int>) -> Int {
        actors.withLock { Int.random(in: range, using: &$0.random) }
    }

    private func count(_ event: String, _ times: Int = 1) {
        actors.withLock { $0.tally[event, default: 0] += times }
    }

    private func mark(_ event: String) {
        count(event)
        mark()
    }

    private func mark() {
        actors.withLock { actors in
            actors.mayBeOver = true
            actors.marks += 1
        }
    }
}

extension FakeWorld {
    fileprivate func isReplay(_ answered: VerifiedResponse) -> Bool {
        answered.response.message.value(of: "countersign-replayed") != nil
    }
}
