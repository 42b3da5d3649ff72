import ClientFakes
import CountersignWire
import Testing

@testable import CountersignClient

/// The client learns the server's time once, and it stays right when the device's clock changes.
@Suite struct ClockTests {
    private func signedIn() async throws -> FakeWorld {
        let world = try await FakeWorld()
        try await world.signUp()
        try await world.logIn()
        return world
    }

    /// The number of requests that `step` sends.
    private func count(_ world: FakeWorld, _ step: () async throws -> Void) async throws -> Int {
        let before = await world.network.sent.count
        try await step()
        return await world.network.sent.count - before
    }

    @Test(arguments: [86_400, -86_400, 3_600 * 24 * 365, 61, -61]) func whoSetsTheClockIsNotRefused(
        _ jump: Int64
    )
        async throws
    {
        let world = try await signedIn()
        for _ in 0..<3 {
            world.time.set(by: jump)
            await world.pass(100)
            #expect(try await count(world) { _ = try await world.calls.send(world.draft()) } == 1)
        }
        // A refresh carries its own time.
        world.time.set(by: jump)
        await world.pass(FakeSession.lifetime)
        #expect(try await count(world) { _ = try await world.calls.send(world.draft()) } == 3)
        #expect(await world.authority.accepted == 4)
    }

    @Test func theKeptDifferenceIsTheFirstGuessOfWhoComesAfter() async throws {
        var world = try await FakeWorld()
        world.time.set(by: -86_400)
        try await world.signUp()
        try await world.logIn()
        try world.restart()
        #expect(try await count(world) { _ = try await world.calls.send(world.draft()) } == 1)
        // The stored correction is wrong: after one refusal it is right again.
        try world.restart()
        world.time.set(by: 50_000)
        #expect(try await count(world) { _ = try await world.calls.send(world.draft()) } == 2)
        #expect(try await count(world) { _ = try await world.calls.send(world.draft()) } == 1)
        #expect(try world.state.clockOffset == 36_400)
    }

    /// The client discards an unconfirmed clock correction: the device's clock may be corrected before the
    /// first response.
    @Test func whatNobodyConfirmedIsNotHeldOnTo() async throws {
        let world = try await signedIn()
        let fresh = try world.another()
        await world.network.plan(.notSent, at: "/orders")
        await #expect(throws: ClientOperationError.self) { try await fresh.calls.send(fresh.draft()) }
        await world.authority.advance(by: 5_000)
        world.time.set(by: 5_000)
        #expect(try await count(world) { _ = try await fresh.calls.send(fresh.draft()) } == 1)
    }

    /// An unsigned or delayed `stale` does not change the correction.
    @Test func onlyASignedAndPromptWordMovesTheClock() async throws {
        let world = try await signedIn()
        let told = Array(#"{"code":"stale","time":1900000000}"#.utf8)
        await world.network.plan(
            .answered { _ in Response(status: 401, fields: [], body: told) }, at: "/orders")
        #expect(try await world.calls.send(world.draft()).notice?.code == "stale")
        #expect(await world.network.done == 1)
        #expect(try await count(world) { _ = try await world.calls.send(world.draft()) } == 1)
    }
}
