import ClientFakes
import CountersignWire
import Testing
import Waiting

@testable import CountersignClient

/// A hundred concurrent requests find an expired token.
@Suite struct AtOnceTests {
    @Test(arguments: [1, 2]) func aHundredRequestsRefreshOnce(_ processes: Int) async throws {
        let world = try await FakeWorld()
        try await world.signUp()
        try await world.logIn()
        let worlds = try (0..<processes).map { _ in try world.another() }
        for other in worlds { _ = try await other.calls.send(other.draft()) }
        await world.pass(FakeSession.lifetime)
        // All hundred are on their way, with the expired token, before the first is refused.
        let before = await world.network.sent.count
        for _ in 0..<100 {
            await world.network.plan(
                .before {
                    await until("a hundred requests") { await world.network.sent.count >= before + 100 }
                }, at: "/orders")
        }
        let statuses = await withTaskGroup(of: Int.self) { group in
            for number in 0..<100 {
                let mine = worlds[number % processes]
                group.addTask { (try? await mine.calls.send(mine.draft("POST")).response.status) ?? 0 }
            }
            return await group.reduce(into: []) { $0.append($1) }
        }
        #expect(statuses == [Int](repeating: 200, count: 100))
        let sent = await world.network.sent.map { String(decoding: $0.target, as: UTF8.self) }
        #expect(sent.count { $0.hasSuffix("/token") } == 1)
        #expect(await world.authority.refreshes == 1)
        #expect(sent[before...].count { $0 == "/orders" } == 200, "each was refused, and sent again")
        let done = await world.authority.done
        #expect(done.count == 100 && done[""] == nil && done.values.allSatisfy { $0 == 1 })
    }

    /// A cancelled call stops waiting; the refresh and the other calls continue.
    @Test func whoIsCancelledDoesNotTakeTheOthersWithHim() async throws {
        let world = try await FakeWorld()
        try await world.signUp()
        try await world.logIn()
        await world.pass(FakeSession.lifetime)
        let (hold, release) = AsyncStream<Void>.makeStream()
        let (reached, reach) = AsyncStream<Void>.makeStream()
        await world.network.plan(
            .before {
                reach.finish()
                for await _ in hold {}
            }, at: "/token")
        let first = Task { try await world.calls.send(world.draft()) }
        for await _ in reached {}
        let second = Task { try await world.calls.send(world.draft()) }
        first.cancel()
        await #expect { try await first.value } throws: { error in
            guard case ClientOperationError.cancelled = error else { return false }
            return true
        }
        release.finish()
        #expect(try await second.value.response.status == 200)
        #expect(await world.authority.refreshes == 1)
    }
}
