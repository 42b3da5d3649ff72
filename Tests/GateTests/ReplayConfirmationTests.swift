import CountersignSchemes
import CountersignWire
import Testing

@testable import CountersignGate

/// The record of clocks in a replay file, and the effect of an operator's confirmation.
@Suite struct ReplayConfirmationTests {
    private let now: Int64 = 1_800_000_000
    private let year: Int64 = 365 * 86_400

    @Test func intervalsOnlyGrow() {
        var intervals = TimeIntervals()
        for index in 0..<20 { intervals.add(first: Int64(index) * 1_000, last: Int64(index) * 1_000 + 100) }
        #expect(intervals.all.count == TimeIntervals.most)
        for index in 0..<20 { #expect(intervals.contains(Int64(index) * 1_000 + 50)) }
        intervals.add(first: Int64.min, last: Int64.max)
        #expect(intervals.all == [TimeIntervals.Interval(first: .min, last: .max)])
    }

    @Test(arguments: [-31_536_000, -3_600, -60, 60, 3_600, 31_536_000] as [Int64])
    func aJumpBeginsAnotherPeriodAndASmallOneDoesNot(_ jump: Int64) {
        let (first, _) = ReplayClock.extended(TimeIntervals(), around: now)
        let (second, present) = ReplayClock.extended(first, around: now + jump)
        #expect(second.contains(now) && second.contains(now + jump))
        #expect(present.first <= now + jump && now + jump <= present.last)
        #expect(second.all.count == (abs(jump) > 60 ? 2 : 1))
    }

    @Test func everyAdmissionLiesInAPeriodOnTheDisk() throws {
        let folder = try Folder()
        let path = folder.path + "/replay"
        let file = try ReplayFile(path: path, expecting: nil, now: now)
        for time in [now, now + 50, now + year, now + 3_000, now - year] {
            _ = try? file.insertNow(entry("n\(time)", at: time))
            let status = try #require(try ReplayStatus(path: path, now: time))
            #expect(status.periods.contains(time))
        }
    }

    @Test func whatTheWrongClockAdmittedStaysRefused() throws {
        let folder = try Folder()
        let path = folder.path + "/replay"
        let file = try ReplayFile(path: path, expecting: nil, now: now)
        try file.insertNow(entry("right", at: now))
        let wrong = now + year
        for offset in [-300, 0, 300] as [Int64] {
            try file.insertNow(entry("n\(offset)", at: wrong, created: wrong + offset))
        }
        try file.apply(ClockConfirmation(number: 1, at: now + 5, refused: TimeIntervals()), now: now + 5)
        let floor = try #require(try ReplayStatus(path: path, now: now + 5)).floor
        #expect(floor > now + 5 && floor < now + 600)
        #expect(code { try file.insertNow(entry("new", at: now + 5)) } == .unavailable)
        #expect(code { try file.insertNow(entry("new", at: floor + 1)) } == nil)
        for offset in [-300, 0, 300] as [Int64] {
            let again = try entry("n\(offset)", at: wrong + offset, created: wrong + offset)
            #expect(code { try file.insertNow(again) } == .unavailable)
        }
        #expect(code { try file.insertNow(entry("later", at: wrong + 3_600)) } == nil)
    }

    /// Another guard admitted what this file does not have.
    @Test func aFileThatIsUsedAgainRefusesWhatAnotherGuardMayHaveAdmitted() throws {
        let folder = try Folder()
        let file = try ReplayFile(path: folder.path + "/replay", expecting: nil, now: now)
        #expect(code { try file.insertNow(entry("before", at: now)) } == nil)
        try file.raiseFloor(at: now)
        for ahead in [-1, 0, 300, 310] as [Int64] {
            let entry = try entry("n\(ahead)", at: now, created: now + ahead)
            #expect(code { try file.insertNow(entry) } == .unavailable)
        }
        #expect(code { try file.insertNow(entry("after", at: now, created: now + 311)) } == nil)
        try file.raiseFloor(at: now - year)
        #expect(code { try file.insertNow(entry("n", at: now, created: now + 310)) } == .unavailable)
    }

    @Test func aConfirmationIsCarriedOutOnceAndOnlyAtItsTime() throws {
        let folder = try Folder()
        let path = folder.path + "/replay"
        let file = try ReplayFile(path: path, expecting: nil, now: now)
        let confirmation = ClockConfirmation(number: 1, at: now, refused: TimeIntervals())
        #expect(throws: OperationalError.self) { try file.apply(confirmation, now: now + year) }
        #expect(code { try file.insertNow(entry("n", at: now + 1)) } == nil)
        try file.apply(confirmation, now: now + 2)
        let floor = try #require(try ReplayStatus(path: path, now: now)).floor
        try file.apply(confirmation, now: now + 100)
        #expect(try #require(try ReplayStatus(path: path, now: now)).floor == floor)
    }

    private func entry(_ nonce: String, at time: Int64, created: Int64? = nil) throws -> ReplayEntry {
        let bytes = Array(nonce.utf8)
        let replayKey = Claim.ReplayKey(bytes.span)
        return ReplayEntry(
            keyID: try #require(KeyID("r_key")), scheme: .messageSignatures,
            replayKey: try #require(replayKey),
            created: created ?? time, now: time)
    }
}
