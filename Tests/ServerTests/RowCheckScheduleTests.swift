import Testing

@testable import CountersignServer

/// All rows are verified after each change, within their share of the time, and every ten minutes without
/// one.
@Suite struct RowCheckScheduleTests {
    @Test func verifiesAfterAChange() {
        var schedule = RowCheckSchedule()
        #expect(schedule.isDue(at: 0) && schedule.mustVerify(mark: 1, at: 0))
        schedule.didVerify(mark: 1, from: 0, to: 0)
        #expect(!schedule.isDue(at: 14) && schedule.isDue(at: 15))
        #expect(!schedule.mustVerify(mark: 1, at: 15))
        schedule.didSkip(at: 15)
        #expect(!schedule.isDue(at: 29) && schedule.isDue(at: 30))
        #expect(schedule.mustVerify(mark: 2, at: 30))
        // What changed while the rows were read has a later mark.
        schedule.didVerify(mark: 2, from: 30, to: 30)
        #expect(schedule.mustVerify(mark: 3, at: 45))
    }

    @Test func verifiesNowAndThenWithoutAChange() {
        var schedule = RowCheckSchedule()
        schedule.didVerify(mark: 1, from: 0, to: 1)
        #expect(!schedule.mustVerify(mark: 1, at: 600))
        #expect(schedule.mustVerify(mark: 1, at: 601))
        schedule.didVerify(mark: 1, from: 601, to: 602)
        #expect(!schedule.mustVerify(mark: 1, at: 1_200))
    }

    @Test func restsAfterALongCheck() {
        var schedule = RowCheckSchedule()
        schedule.didVerify(mark: 1, from: 0, to: 5)
        #expect(!schedule.isDue(at: 1_004) && schedule.isDue(at: 1_005))
        // A short one that begins in one second and ends in the next is not one of a second.
        schedule.didVerify(mark: 1, from: 2_000, to: 2_001, taking: .milliseconds(20))
        #expect(!schedule.isDue(at: 2_015) && schedule.isDue(at: 2_016))
        schedule.didVerify(mark: 1, from: 3_000, to: 3_001, taking: .milliseconds(900))
        #expect(!schedule.isDue(at: 3_180) && schedule.isDue(at: 3_181))
    }

    @Test func verifiesAgainAfterAFailure() {
        var schedule = RowCheckSchedule()
        schedule.didVerify(mark: 1, from: 0, to: 0)
        #expect(schedule.mustVerify(mark: 2, at: 15))
        schedule.didFail(from: 15, to: 15)
        #expect(schedule.isDue(at: 30) && schedule.mustVerify(mark: 2, at: 30))
        #expect(schedule.mustVerify(mark: 2, at: 31), "not yet verified")
    }
}
