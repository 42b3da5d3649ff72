import CountersignAuthority
import CountersignGate
import CountersignMemory
import ScriptedClock
import Testing

@testable import CountersignServer

/// Login limits that nodes share are removed from their store by a trusted clock only.
@Suite struct LoginLimitPersistenceTests {
    /// A store that counts removals.
    private final class Table: SharedLoginStore {
        let removals = Locked(0)

        func addPendingLogin(_ row: PendingLoginRow, milliseconds: Int64, capacity: Int) {}
        func takePendingLogin(_ id: [UInt8]) -> [UInt8]? { nil }
        func expirePendingLogins() {}
        func debitLogins(_ charges: [SharedCharge]) -> SharedDebitOutcome { .allowed(at: 0) }
        func refundLogins(_ debits: [SharedDebit]) {}
        func loginLimits(at places: [SharedLimitPlace]) -> (now: Int64, fullAt: [Int64]) { (0, []) }
        func expireLoginLimits() { removals.with { $0 += 1 } }
    }

    @Test func aClockInDoubtRemovesNothing() throws {
        let server = try SessionServer()
        let (script, table) = (ScriptedClock(wall: 1_800_000_000), Table())
        let clock = TrustedClock(reading: script.clocks)
        clock.begin(ClockTrust.Beginning())
        let persistence = try LoginLimitPersistence(
            in: server.deployment.folder, rules: .init(), sharing: nil, pending: PendingLogins(capacity: 1),
            log: nil, clock: clock)
        persistence.sharedLimits = SharedLoginLimits(
            persistence.limits, keys: try AccountKeys(server.deployment), in: table)
        script.advance(600)
        script.jump(91 * 86_400)
        for _ in 0..<60 { persistence.tick() }
        #expect(table.removals.with { $0 } == 0)
        script.jump(-91 * 86_400)
        #expect(clock.sweepTime == nil)
        script.advance(600)
        for _ in 0..<60 { persistence.tick() }
        #expect(table.removals.with { $0 } == 2)
    }
}
