import ClientFakes
import CountersignSchemes
import CountersignWire
import Testing

@testable import CountersignClient

/// An update of the app changes its release, and the server admits a session's key for the release that made
/// it alone: the client refreshes, and its user does not notice.
@Suite struct ReleaseUpdateTests {
    private func updated() async throws -> FakeWorld {
        var world = try await FakeWorld()
        try await world.signUp()
        try await world.logIn()
        #expect(try await world.calls.send(world.draft()).response.status == 200)
        let id = try #require(world.authority.updatedID)
        world.installation.release = Credentials(keyID: id, key: world.authority.release)
        try world.restart()
        return world
    }

    @Test func anUpdatedAppGoesOn() async throws {
        let world = try await updated()
        for _ in 0..<3 { #expect(try await world.calls.send(world.draft("POST")).response.status == 200) }
        #expect(await world.authority.refreshes == 1)
        #expect(await world.authority.session?.epoch == 1)
        #expect(try world.state.login?.release == world.authority.updatedID)
    }

    /// A body that can be sent once is not sent under the old key.
    @Test func aStreamIsSentAfterTheRefresh() async throws {
        let world = try await updated()
        let answer = try await world.calls.send(world.draft("POST"), body: .once(isUsedUp: { true }))
        #expect(answer.response.status == 200)
        #expect(await world.authority.refreshes == 1)
    }

    @Test func anUpdateDuringARefreshGoesOn() async throws {
        var world = try await FakeWorld()
        try await world.signUp()
        try await world.logIn()
        await world.pass(FakeSession.lifetime)
        for _ in 0..<2 { await world.network.plan(.lost, at: "/token") }
        let losing = world
        await #expect(throws: ClientOperationError.self) { try await losing.calls.send(losing.draft()) }
        let id = try #require(world.authority.updatedID)
        world.installation.release = Credentials(keyID: id, key: world.authority.release)
        try world.restart()
        #expect(try await world.calls.send(world.draft()).response.status == 200)
        #expect(await world.authority.session?.ended == nil)
    }
}
