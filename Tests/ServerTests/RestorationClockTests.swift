import CountersignAuthority
import CountersignGate
import CountersignWire
import Foundation
import Testing

@testable import CountersignServer

/// A restoration goes by no clock that another one contradicts: the refusal of keyed requests would end in
/// the past, or a year ahead.
@Suite struct RestorationClockTests {
    private let now: Int64 = 1_800_000_000

    private func clock(_ confirmation: RestorationClock.Confirmation = .none) -> RestorationClock {
        RestorationClock(now: now, confirmation: confirmation)
    }

    @Test(
        "the database's clock, in seconds behind",
        arguments: [(0, true), (5, true), (-5, true), (2 * 86_400, false), (-2 * 86_400, false), (8, false)]
            as [(Int64, Bool)])
    func database(behind: Int64, isRight: Bool) throws {
        let database = (now - behind) * 1_000
        if isRight {
            #expect(try clock().time(beside: database) == min(now, now - behind))
        } else {
            let error = #expect(throws: OperationalError.self) { try clock().time(beside: database) }
            #expect(error?.message.contains("--confirm-clock") == true)
        }
        #expect(try clock(.given).time(beside: database) == now)
    }

    @Test(
        "the newest record, in seconds behind",
        arguments: [
            (0, true), (30 * 86_400, true), (32 * 86_400, false), (365 * 86_400, false), (-5, true),
            (-8, false), (-2 * 86_400, false),
        ] as [(Int64, Bool)])
    func record(behind: Int64, isRight: Bool) throws {
        if isRight {
            #expect(try clock().time(beside: [0, now - behind], in: [nil]) == now)
        } else {
            #expect(throws: OperationalError.self) { try clock().time(beside: [now - behind], in: []) }
        }
        #expect(try clock(.given).time(beside: [now - behind], in: []) == now)
    }

    @Test(
        "the clock file of a data folder",
        arguments: [(0, true), (60, false), (-60, false)] as [(Int64, Bool)])
    func file(ahead: Int64, isRight: Bool) throws {
        let folder = try DataFolder(
            FileManager.default.temporaryDirectory.appendingPathComponent(UUID().uuidString).path,
            absence: .create)
        let (wall, uptime) = TrustedClock.machine()
        let trust = ClockTrust(
            mark: ClockTrust.Mark(wall: wall - ahead * 1_000, uptime: uptime), agreesSince: uptime,
            isTrusted: true, lastTrusted: wall - ahead * 1_000)
        let record = ClockRecord(boot: try MachineBoot.currentID(), trust: trust, confirmation: 0)
        try ClockRecord.file(in: folder).replace(by: record.bytes)
        let clock = RestorationClock(now: wall / 1_000, confirmation: .none)
        if isRight { return #expect(try clock.time(beside: [], in: [folder]) == wall / 1_000) }
        #expect(throws: OperationalError.self) { try clock.time(beside: [], in: [folder]) }
    }
}
