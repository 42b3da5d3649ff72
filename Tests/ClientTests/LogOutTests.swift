import ClientFakes
import CountersignHandshake
import CountersignMemory
import CountersignSchemes
import CountersignSeal
import CountersignVault
import CountersignWire
import Testing

@testable import CountersignClient
import CountersignTransport
import Waiting

/// Who signs out is signed out here at once; the server counts as told only by its own word, and a thief who
/// holds a copy of the vault is found.
@Suite struct LogOutTests {
    private func signedIn(_ vault: MemoryVault = MemoryVault()) async throws -> FakeWorld {
        let world = try await FakeWorld(vault)
        try await world.signUp()
        try await world.logIn()
        return world
    }

    private func logOut(_ world: FakeWorld) async throws -> LogOut.Outcome {
        try await LogOut(world.installation, environment: world.environment)()
    }

    private func callByTheApp(_ world: FakeWorld) async throws {
        _ = try await ReleaseCalls(world.installation, environment: world.environment).send(world.draft())
    }

    private func sent(_ world: FakeWorld, to path: String) async -> Int {
        await world.network.sent.count { String(decoding: $0.target, as: UTF8.self).hasSuffix(path) }
    }

    /// A party in between has another request refused in its place: genuine, and nothing to do with the
    /// session.
    @Test(arguments: Refusal.Code.allCases) func aRefusalOfAChangedCopyIsNotTheSessionsEnd(
        _ code: Refusal.Code
    ) async throws {
        let world = try await signedIn()
        await world.network.plan(.changed(code.rawValue), at: "/logout")
        let outcome = try await logOut(world)
        #expect(await world.network.done == 1)
        let ended = await world.authority.session?.ended
        #expect(ended == nil || ended == "signed-out", "never a false record of a theft")
        if case .toldLater = outcome {
            #expect(try world.state.pendingLogOuts.count == 1 && ended == nil)
            try await callByTheApp(world)
            await world.keeper.logOuts.settle(within: .seconds(10))
        }
        #expect(await world.authority.session?.ended == "signed-out")
        #expect(try world.state.pendingLogOuts.isEmpty)
    }

    /// What a machine in between answers, with and without a body, is not the server's word; a pinned
    /// certificate and no authority key change nothing about a session that has a key of its own.
    @Test(arguments: [200, 204, 302, 401, 404, 429, 500, 502], [true, false])
    func anUnsignedAnswerSaysNothing(
        _ status: Int, _ isKeyKnown: Bool
    ) async throws {
        var world = try await signedIn()
        if !isKeyKnown { (world.installation.authorityKey, world.installation.channel) = (nil, .pinned) }
        await world.network.plan(
            .answered { _ in Response(status: status, fields: [], body: []) }, at: "/logout")
        guard case .toldLater = try await logOut(world) else {
            Issue.record("\(status) counts as told")
            return
        }
        #expect(try world.state.login == nil && world.state.pendingLogOuts.count == 1)
    }

    /// The device's date decides nothing: a request is made, and an answer awaited.
    @Test func aWrongDateForgetsNothing() async throws {
        let world = try await signedIn()
        await world.network.plan(.notSent, at: "/logout")
        _ = try await logOut(world)
        let later = try world.another()
        later.time.set(by: 91 * 86_400)
        await later.network.plan(.notSent, at: "/logout")
        guard case .toldLater = try await logOut(later) else { throw FakeAuthority.Problem.broken }
        #expect(await later.network.done == 2)
        #expect(try later.state.pendingLogOuts.count == 1)
        guard case .signedOut = try await logOut(later) else { throw FakeAuthority.Problem.broken }
        #expect(await world.authority.session?.ended == "signed-out")
    }

    /// Once the server's time is known, what has ended by itself is dropped, told or not; but not before a
    /// thief's session would be found as well.
    @Test func aSessionThatEndedByItselfIsDropped() async throws {
        let world = try await signedIn()
        await world.network.plan(.notSent, at: "/logout")
        _ = try await logOut(world)
        await world.pass(91 * 86_400)
        for _ in 0..<2 { await world.network.plan(.changed("unavailable"), at: "/logout") }
        guard case .toldLater = try await logOut(world) else { throw FakeAuthority.Problem.broken }
        #expect(try world.state.pendingLogOuts.count == 1)
        await world.pass(30 * 86_400)
        for _ in 0..<2 { await world.network.plan(.changed("unavailable"), at: "/logout") }
        guard case .signedOut = try await logOut(world) else { throw FakeAuthority.Problem.broken }
        #expect(try world.state.pendingLogOuts.isEmpty)
        #expect(await world.authority.session?.ended == nil)
    }

    /// Another process renews the session between the look at it and its end.
    @Test func theEndHasTheKeysOfTheStateThatItChanges() async throws {
        let world = try await signedIn()
        _ = try world.keeper.readVault()
        let (store, other) = (world.store, try world.another())
        await world.network.plan(.notSent, at: "/logout")
        let before = store.contents
        try await other.calls.renew()
        #expect(try await other.calls.send(other.draft()).response.status == 200)
        // The first look finds the earlier state, and its change the later one.
        let swapping = SwappingStore(store, until: before)
        let late = try world.use(store.vault(swapping))
        guard case .toldLater = try await logOut(late) else { throw FakeAuthority.Problem.broken }
        guard case .device(let device)? = try world.state.pendingLogOuts.first?.credential else {
            throw FakeAuthority.Problem.broken
        }
        #expect(device.latest.number == 1 && device.counter == 1)
    }

    /// A login replaces the session between the look at it and its end: the new session stays, and the server
    /// is told of the old one all the same.
    @Test func aSessionThatWasReplacedIsToldToo() async throws {
        let world = try await signedIn()
        let before = world.store.contents
        let old = try #require(try world.state.login?.id)
        let new = try await world.another().logIn()
        let late = try world.use(world.store.vault(SwappingStore(world.store, until: before)))
        await world.network.plan(.notSent, at: "/logout")
        guard case .toldLater = try await logOut(late) else { throw FakeAuthority.Problem.broken }
        #expect(try world.state.pendingLogOuts.map(\.session) == [old])
        #expect(try world.state.login?.id == new.id)
        #expect(await PendingLogOuts(installation: late.installation, environment: late.environment).send())
        #expect(try world.state.pendingLogOuts.isEmpty)
        #expect(try await world.calls.send(world.draft()).response.status == 200)
    }

    /// One that cannot be told holds up no other.
    @Test func eachIsToldForItself() async throws {
        let world = try await signedIn()
        for _ in 0..<2 {
            await world.network.plan(.notSent, at: "/logout")
            _ = try await logOut(world)
            await world.network.plan(.notSent, at: "/logout")
            try await world.logIn()
            await world.keeper.logOuts.settle(within: .seconds(10))
            await world.network.calm()
        }
        #expect(try world.state.pendingLogOuts.count == 2)
        let second = try world.state.pendingLogOuts[1].session
        let first = try world.state.pendingLogOuts[0].session
        await world.network.plan(.changed("unavailable"), at: "/logout")
        await PendingLogOuts(installation: world.installation, environment: world.environment).send()
        #expect(try world.state.pendingLogOuts.map(\.session) == [first] && first != second)
    }

    // MARK: In the background

    /// Who drops the log-outs does not slow the app.
    @Test func noCallWaitsForALogOut() async throws {
        let world = try await signedIn()
        await world.network.plan(.notSent, at: "/logout")
        _ = try await logOut(world)
        let isOpen = Locked(false)
        await world.network.plan(
            .before { await until("the calls are over") { isOpen.with { $0 } } },
            at: "/logout")
        for _ in 0..<5 { try await callByTheApp(world) }
        #expect(try world.state.pendingLogOuts.count == 1)
        #expect(world.keeper.logOuts.isRunning)
        isOpen.with { $0 = true }
        await world.keeper.logOuts.settle(within: .seconds(10))
        #expect(try world.state.pendingLogOuts.isEmpty)
        #expect(await sent(world, to: "/logout") == 2, "one at a time")
    }

    @Test func failuresAreRetriedMoreAndMoreSeldom() async throws {
        let world = try await signedIn()
        await world.network.plan(.notSent, at: "/logout")
        _ = try await logOut(world)
        for _ in 0..<60 {
            await world.network.plan(.notSent, at: "/logout")
            try await callByTheApp(world)
            await world.keeper.logOuts.settle(within: .seconds(10))
            await world.pass(5)
        }
        // In five minutes, after 0, 10, 30, 70, 150 seconds.
        #expect((4...6).contains(await sent(world, to: "/logout") - 1))
        await world.network.calm()
        await world.pass(3_600)
        try await callByTheApp(world)
        await world.keeper.logOuts.settle(within: .seconds(10))
        #expect(await world.authority.session?.ended == "signed-out")
    }

    // MARK: A thief

    /// A copy of the vault on another device, which renews and uses the session `rounds` times.
    private func robbed(_ rounds: Int, _ world: FakeWorld) async throws {
        let copied = MemoryVault()
        copied.contents = world.store.contents
        let thief = try world.use(copied.vault)
        for _ in 0..<rounds {
            try await thief.calls.renew()
            #expect(try await thief.calls.send(thief.draft()).response.status == 200)
        }
        await world.pass(60)
    }

    @Test(arguments: 1...3) func aThiefIsLeftNothing(_ rounds: Int) async throws {
        let world = try await signedIn()
        try await robbed(rounds, world)
        let outcome = try await logOut(world)
        let ended = await world.authority.session?.ended
        if case .toldLater = outcome { Issue.record("the server knows") }
        #expect(ended == (rounds == 1 ? "signed-out" : "reused"), "under a key that is kept, or found")
        #expect(try world.state.pendingLogOuts.isEmpty)
    }

    /// What was found and could not be reported is reported by the log-out.
    @Test func aFindingIsReportedAtTheEnd() async throws {
        let world = try await signedIn()
        try await robbed(2, world)
        try world.keeper.change { state in
            guard case .device(var session)? = state.login?.session else { return .keep(()) }
            session.noteReuse()
            state.login?.session = .device(session)
            return .write(())
        }
        guard case .hadEnded(let notice) = try await logOut(world) else { throw FakeAuthority.Problem.broken }
        #expect(notice.reason == "reused")
        #expect(await world.authority.session?.ended == "reused")
        #expect(try world.state.ended?.reason == "reused")
    }

    /// The report, too, is kept for later.
    @Test func aThiefIsFoundLater() async throws {
        let world = try await signedIn()
        try await robbed(2, world)
        await world.network.plan(.lost, at: "/token")
        guard case .toldLater = try await logOut(world) else { throw FakeAuthority.Problem.broken }
        let later = try world.another()
        _ = try later.keeper.readVault()
        try await callByTheApp(later)
        await later.keeper.logOuts.settle(within: .seconds(10))
        #expect(await world.authority.session?.ended == "reused")
        #expect(try later.state.pendingLogOuts.isEmpty)
    }

    /// A party in between provokes the same refusal for a device that nobody has copied.
    @Test(arguments: ["unknown-key", "token-expired"]) func anHonestDeviceReportsNoTheft(_ code: String)
        async throws
    {
        let world = try await signedIn()
        await world.pass(FakeSession.lifetime)
        await world.network.plan(.lost, at: "/token")
        await world.network.plan(.lost, at: "/token")
        let dying = world
        _ = try? await dying.calls.send(dying.draft())
        await world.network.plan(.changed(code), at: "/logout")
        guard case .signedOut = try await logOut(world) else { throw FakeAuthority.Problem.broken }
        #expect(await world.authority.session?.ended == "signed-out")
    }

    /// The end of the process at each write loses neither the sign-out nor the log-out, and makes no thief of
    /// the device itself.
    @Test func anEndAtAnyStepLosesNothing() async throws {
        for write in 0...5 {
            let vault = MemoryVault()
            var world = try await signedIn(vault)
            await world.network.plan(.changed("unknown-key"), at: "/logout")
            vault.failAfter(writes: write)
            let dying = world
            let isOver = (try? await logOut(dying)) != nil
            vault.failAfter(writes: .max)
            await world.network.calm()
            try world.restart()
            _ = try world.keeper.readVault()
            #expect((try world.state.login == nil) == (isOver || write > 0))
            _ = try? await logOut(world)
            #expect(await world.authority.session?.ended == "signed-out", "after \(write) writes")
            #expect(try world.state.pendingLogOuts.isEmpty)
        }
    }
}

/// A store whose first reading of each item finds what was there before.
private final class SwappingStore: ItemStore {
    private let base: MemoryVault
    private let before: [ItemName: Secret]
    private let readings = Locked(0)

    init(_ base: MemoryVault, until before: [ItemName: Secret]) {
        (self.base, self.before) = (base, before)
    }

    func find(_ name: ItemName) -> VaultReadResult<Secret> {
        let isFirst = readings.with { readings in
            readings += 1
            return readings == 1
        }
        if isFirst, let item = before[name] { return .value(item) }
        return base.find(name)
    }

    func names() throws(VaultError) -> [ItemName] { try base.names() }
    func put(_ bytes: Secret, at name: ItemName) throws(VaultError) { try base.put(bytes, at: name) }
    func remove(_ name: ItemName) throws(VaultError) { try base.remove(name) }
}
