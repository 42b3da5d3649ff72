import ClientFakes
import CountersignWire
import Testing

@testable import CountersignClient

/// Refreshes that refusals of a live token provoke are paced; a token that has expired is renewed at once.
@Suite struct RefreshPacerTests {
    private static func session(_ byte: UInt8) throws -> SessionID {
        let bytes = [UInt8](repeating: byte, count: SessionID.count)
        let id = SessionID(bytes.span)
        return try #require(id)
    }

    @Test func delaysDouble() throws {
        let (pacer, id) = (RefreshPacer(), try RefreshPacerTests.session(1))
        var (now, waited): (Int64, [Int64]) = (5_000_000, [])
        for _ in 0..<11 {
            let before = now
            while !pacer.admit(id, at: now) { now += 500 }
            waited.append((now - before) / 1_000)
        }
        #expect(waited == [0, 0, 1, 2, 4, 8, 16, 32, 60, 60, 60])
        #expect(!pacer.admit(id, at: now + 59_999))
        // Another session begins anew, and so does this one after an hour of quiet or an expired token.
        #expect(pacer.admit(try RefreshPacerTests.session(2), at: now))
        let again = RefreshPacer()
        for _ in 0..<2 { #expect(again.admit(id, at: 0)) }
        #expect(!again.admit(id, at: 999))
        again.noteExpiry(of: id)
        #expect(again.admit(id, at: 999))
        for _ in 0..<8 { now += 3_600_000; #expect(again.admit(id, at: now)) }
    }

    /// A party on the path provokes a genuine refusal with each request.
    @Test func provokedRefreshesArePaced() async throws {
        let world = try await FakeWorld()
        try await world.signUp()
        try await world.logIn()
        for round in 0..<20 {
            await world.network.plan(.changed("unknown-key"), at: "/orders")
            _ = try await world.calls.send(world.draft())
            if round == 9 { #expect(await world.authority.refreshes == 2) }
        }
        #expect(await world.authority.refreshes == 2)
        await world.pass(1)
        await world.network.plan(.changed("unknown-key"), at: "/orders")
        #expect(try await world.calls.send(world.draft()).response.status == 200)
        #expect(await world.authority.refreshes == 3)
        // A token that has expired does not wait.
        await world.pass(FakeSession.lifetime)
        #expect(try await world.calls.send(world.draft()).response.status == 200)
        #expect(await world.authority.refreshes == 4)
    }
}
