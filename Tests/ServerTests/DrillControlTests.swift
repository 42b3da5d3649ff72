import CountersignAuthority
import CountersignGate
import CountersignMemory
import CountersignSQL
import CountersignSchemes
import CountersignSeal
import CountersignWire
import Foundation
import Testing

@testable import CountersignServer

/// A drill is one at a time, is kept alive by its command alone, and ends by itself; while it is on, the
/// store and the replay guard fail as if they were away, and nothing is changed in them.
@Suite struct DrillControlTests {
    private let now = Locked<Int64>(1_000)
    private let control: DrillControl

    init() {
        let now = now
        control = DrillControl(log: nil, clock: { now.with { $0 } })
    }

    private func pass(milliseconds: Int64) { now.with { $0 += milliseconds } }

    @Test func isOneAtATime() {
        #expect(control.begin(.store, id: "a", milliseconds: 5_000) == 5_000)
        #expect(control.store.isOn && !control.replay.isOn)
        #expect(control.begin(.store, id: "b", milliseconds: 5_000) == nil)
        #expect(control.begin(.replay, id: "a", milliseconds: 5_000) == nil)
        #expect(control.keep(.store, id: "b", milliseconds: 0) == nil, "another command does not end it")
        #expect(control.store.isOn)
        #expect(control.keep(.store, id: "a", milliseconds: 0) == 0)
        #expect(!control.store.isOn)
        #expect(control.begin(.replay, id: "b", milliseconds: 5_000) != nil)
    }

    @Test("it lasts a minute at most, however often its command asks for more")
    func isBounded() throws {
        let rest = try #require(control.begin(.replay, id: "a", milliseconds: 3_600_000))
        #expect(rest == 60_000)
        #expect(control.keep(.store, id: "x", milliseconds: 0) == nil)
        #expect(control.keep(.replay, id: "a", milliseconds: 0) == 0)
        _ = control.begin(.store, id: "b", milliseconds: 200)
        pass(milliseconds: 120)
        #expect(control.keep(.store, id: "b", milliseconds: 60_000) == 80)
        pass(milliseconds: 79)
        #expect(control.store.isOn)
        pass(milliseconds: 1)
        #expect(!control.store.isOn)
        #expect(control.keep(.store, id: "b", milliseconds: 0) == 0, "it is over")
    }

    @Test func endsWithoutItsCommand() {
        _ = control.begin(.store, id: "a", milliseconds: 60_000)
        pass(milliseconds: DrillControl.patience - 1)
        #expect(control.store.isOn)
        pass(milliseconds: 1)
        #expect(!control.store.isOn, "even though nothing has looked at it")
        #expect(control.keep(.store, id: "a", milliseconds: 60_000) == 0, "it does not begin again")
        #expect(!control.store.isOn)
        #expect(control.begin(.replay, id: "b", milliseconds: 1_000) != nil)
        #expect(control.keep(.replay, id: "b", milliseconds: 0) == 0)
        #expect(control.keep(.store, id: "a", milliseconds: 60_000) == 0, "nor after another one")
    }

    @Test(
        "it is begun on the machine itself",
        arguments: [
            ("127.0.0.1:5000", true), ("127.8.0.1:5000", true), ("[::1]:5000", true),
            ("10.0.0.1:5000", false), ("[2001:db8::1]:5000", false), ("1.127.0.0:1", false),
            ("[::ffff:10.0.0.1]:5", false), ("[::ffff:127.0.0.1]:5", true), ("[::1:2]:5", false),
            ("127.evil:1", false), ("", false),
        ])
    func isLocal(peer: String, expected: Bool) { #expect(HostPort.isOfThisMachine(peer: peer) == expected) }

    @Test func theReplayGuardRefusesAndRemembersNothing() async throws {
        let path = FileManager.default.temporaryDirectory.appendingPathComponent(UUID().uuidString).path
        defer { try? FileManager.default.removeItem(atPath: path) }
        let now = SystemTime().now
        let file = try ReplayFile(path: path, expecting: nil, now: now - 3_600)
        let replay = DrilledReplayGuard(file, by: control.replay)
        let bytes: [UInt8] = [1, 2, 3]
        let entry = ReplayEntry(
            keyID: try #require(KeyID("r_1")), scheme: .messageSignatures,
            replayKey: ShortBytes(SHA256.digest(bytes.span)), created: now, now: now)
        _ = control.begin(.replay, id: "a", milliseconds: 5_000)
        await #expect(throws: Refusal.self) { try await replay.insert(entry) }
        #expect(throws: Refusal.self) { try replay.insertIfReady(entry) }
        _ = control.keep(.replay, id: "a", milliseconds: 0)
        try await replay.insert(entry)
        await #expect(throws: Refusal.self, "it was used") { try await replay.insert(entry) }
    }

    @Test func theStoreIsNotReached() throws {
        let path = FileManager.default.temporaryDirectory.appendingPathComponent(UUID().uuidString).path
        defer { try? FileManager.default.removeItem(atPath: path) }
        let store = StorePlace.sqlite(path: path).open(interruptedBy: control.store)
        try store.prepare()
        _ = control.begin(.store, id: "a", milliseconds: 5_000)
        let fault = #expect(throws: OperationalError.self) { try store.set(.writeCheck, to: [1]) }
        #expect(fault?.kind == .unreachable)
        #expect(throws: OperationalError.self) { try store.snapshot() }
        _ = control.keep(.store, id: "a", milliseconds: 0)
        #expect(try store.value(of: .writeCheck) == nil)
    }
}
