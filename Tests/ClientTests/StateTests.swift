import CountersignSeal
import CountersignVault
import CountersignWire
import Testing

@testable import CountersignClient

/// How the state lies in a vault.
@Suite struct StateTests {
    @Test func partsAreReadAsTheyWereWritten() throws {
        var parts = StateParts()
        parts.set(7, to: "text")
        parts.set(200, Int64.min)
        parts[9] = Secret(random: 0)
        let again = try #require(StateParts(parts.contents))
        #expect(again.text(7) == "text")
        #expect(again.number(200) == .min)
        #expect(again.bytes(9) == [])
        #expect(again[8] == nil)
        let whole = parts.contents
        for count in 0..<whole.count {
            let short = StateParts(whole.part(0..<count))
            #expect(short == nil || short?.contents.count == count)
        }
    }

    /// A build that is put back for a day must not cost what the newer one kept.
    @Test func whatANewerBuildKeepsOutlivesAnOlderOne() async throws {
        let world = try await FakeWorld()
        try await world.signUp()
        try await world.logIn()
        let (vault, name) = (world.store.vault, try StateKeeper.item(host: world.installation.host, app: nil))
        func kept() throws -> StateParts? {
            try vault.read(name).get().flatMap { StateParts($0.contents.secret) }
        }
        var parts = try #require(try kept())
        parts.set(240, to: "the client's")
        parts.set(200, to: "the session's")
        try vault.write(.bytes(parts.contents), to: name)
        // What this process has in memory is older: it finds that out, and decides anew.
        try world.keeper.change { state in
            state.clockOffset = 5
            return .write(())
        }
        #expect(try kept()?.number(2) == 5)
        #expect(try kept()?.text(240) == "the client's" && kept()?.text(200) == "the session's")
        // What belonged to a session is not the next one's.
        try await world.logIn()
        #expect(try kept()?.text(240) == "the client's" && kept()?.bytes(200) == nil)
    }

    /// A counter that were guessed could be signed twice, which ends the session as reused.
    @Test func aSessionWithoutItsCounterIsNotRead() async throws {
        let world = try await FakeWorld()
        try await world.signUp()
        try await world.logIn()
        let (vault, name) = (world.store.vault, try StateKeeper.item(host: world.installation.host, app: nil))
        let item = try #require(try vault.read(name).get())
        var parts = try #require(StateParts(item.contents.secret))
        #expect(parts.number(27) == 0)
        parts[27] = nil
        try vault.write(.bytes(parts.contents), to: name)
        #expect(throws: ClientOperationError.self) { try world.another().keeper.readVault() }
    }

    /// A client that cannot read the stored state neither overwrites it nor treats its user as signed out.
    @Test func whatCannotBeReadIsNotTakenForNothing() async throws {
        let world = try await FakeWorld()
        try await world.signUp()
        try await world.logIn()
        let (vault, name) = (world.store.vault, try StateKeeper.item(host: world.installation.host, app: nil))
        try vault.write(.bytes(Secret(random: 3)), to: name)
        let before = world.store.writes
        await #expect { try await world.another().calls.send(world.draft()) } throws: { error in
            guard case ClientOperationError.vaultFailed = error else { return false }
            return true
        }
        await #expect(throws: ClientOperationError.self) { try await world.another().logIn() }
        #expect(world.store.writes == before)
    }
}
