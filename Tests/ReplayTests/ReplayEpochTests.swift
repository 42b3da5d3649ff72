import CountersignAuthority
import CountersignWire
import Testing

@testable import CountersignGate
@testable import CountersignReplay

/// What the epoch says of signatures, without a server.
@Suite struct ReplayEpochTests {
    private let epoch = ReplayEpoch(
        number: 3, identity: ReplayDataSet(server: "ab", history: "cd"), evicted: 7, floor: 1_000,
        need: ReplayRetention(window: 100, lifetime: 0))

    @Test func textAndBack() {
        var widened = epoch.widened(to: ReplayRetention(window: 300, lifetime: 9_000), now: 5_000)
        #expect(ReplayEpoch(widened.text) == widened && ReplayEpoch(epoch.text) == epoch)
        widened.serverID = "0f"
        #expect(ReplayEpoch(widened.text) == widened)
        widened.floor = -1
        #expect(ReplayEpoch(widened.text) == nil)
        for text in [
            "", "1", epoch.text + " 1", "2" + epoch.text.dropFirst(), epoch.text.replacing("ab", with: "AB"),
        ] {
            #expect(ReplayEpoch(text) == nil)
        }
    }

    @Test func theFloorCoversWhatMayHaveBeenAdmitted() {
        let next = epoch.next(
            for: ReplayDataSet(server: "ef", history: "cd"), need: ReplayRetention(window: 20, lifetime: 0),
            now: 5_000)
        #expect(next.number == 4 && next.token != epoch.token)
        #expect(next.floor == 5_000 + 100 + ReplayEpoch.margin, "the former window was wider")
        #expect(
            next.bound(for: next.floor, now: 5_000) == next.floor
                && next.bound(for: next.floor + 1, now: 5_000) == nil)
        let later = next.next(for: next.identity, need: next.need, now: 10)
        #expect(later.floor == next.floor, "a floor never falls")
    }

    @Test func entriesOfTheNarrowRetentionCountAsLongAsTheyAreKept() {
        let now: Int64 = 5_000
        let widened = epoch.widened(to: ReplayRetention(window: 400, lifetime: 0), now: now)
        #expect(widened.number == epoch.number && widened.token == epoch.token && widened.need.seconds == 460)
        // Kept for 160 s, and 10 s less are relied on.
        #expect(widened.bound(for: now - 149, now: now) == nil)
        #expect(widened.bound(for: now - 150, now: now) != nil)
        #expect(widened.bound(for: now + 400, now: now + 700) != nil)
        #expect(widened.bound(for: widened.narrowUntil + 1, now: widened.narrowUntil + 300) == nil)
        let again = widened.widened(to: ReplayRetention(window: 500, lifetime: 0), now: now + 100)
        #expect(again.narrowRetention == 160 && again.narrowUntil > widened.narrowUntil)
    }
}

/// What becomes of times at which requests were admitted, when the clock is set.
@Suite struct ReplayPeriodsTests {
    private let identity = ReplayDataSet(server: "ab", history: "cd")
    private let need = ReplayRetention(window: 100, lifetime: 0)

    /// An epoch whose nodes admitted requests at these times of their clocks.
    private func epoch(_ times: Int64...) -> ReplayEpoch {
        times.reduce(ReplayEpoch(number: 1, identity: identity, floor: 0, need: need)) { $0.extended(at: $1) }
    }

    @Test func aPeriodGoesOn() {
        let epoch = epoch(1_000, 1_030, 1_090, 1_150)
        #expect(epoch.periods.admitted.all == [.init(first: 1_000, last: 1_210)])
        #expect(epoch.periods.contain(1_000) && epoch.periods.contain(990) && epoch.periods.contain(1_210))
        #expect(!epoch.periods.contain(989) && !epoch.periods.contain(1_211))
        #expect(!epoch.periods.lieAhead(of: 1_150) && epoch.periods.lieAhead(of: 1_129))
        #expect(ReplayEpoch(epoch.text) == epoch)
    }

    @Test func aClockThatWasAheadLeavesItsPeriodRefused() {
        let ahead = epoch(1_000, 90_000, 90_030)
        #expect(ahead.periods.lieAhead(of: 1_100))
        let next = ahead.next(for: identity, need: need, now: 1_100)
        #expect(next.floor == 1_100 + 100 + ReplayEpoch.margin, "not as far ahead as the wrong clock was")
        for created in [Int64(90_000), 90_090, 89_900, 90_190] {
            #expect(next.periods.refused.contains(created))
        }
        for created in [Int64(1_300), 80_000, 95_000] { #expect(!next.periods.refused.contains(created)) }
        #expect(!next.periods.lieAhead(of: 1_100))
        #expect(ReplayEpoch(next.text) == next)
        #expect(next.next(for: identity, need: need, now: 2_000).periods.refused == next.periods.refused)
    }

    @Test func aClockThatIsBehindRefusesAllThatWasAdmitted() {
        let right = epoch(1_000, 1_050, 1_100, 1_150)
        #expect(right.periods.lieAhead(of: 1_050))
        let next = right.next(for: identity, need: need, now: 1_050)
        #expect(next.floor == 1_210 + 100 + ReplayEpoch.margin)
        let before = right.next(for: identity, need: need, now: 500)
        #expect(before.floor < 1_000 && before.periods.refused.contains(1_100))
        #expect(before.periods.refused.contains(1_210 + 100))
    }
}

/// Which readings of Redis' clock are taken for a jump, and when it was.
@Suite struct RedisClockWatchTests {
    private func watch(_ looks: [(time: Int64, before: Int64, after: Int64, now: Int64)]) -> Int64? {
        var watch = RedisClockWatch()
        for look in looks { watch.note(look.time, between: look.before, and: look.after, now: look.now) }
        return watch.jumped
    }

    @Test func timeThatPasses() {
        #expect(watch([(1_000, 10, 10, 1_000), (1_001, 11, 11, 1_001), (1_601, 611, 611, 1_601)]) == nil)
        // The node was stopped while it waited for the reply.
        #expect(watch([(1_000, 10, 10, 1_000), (1_001, 11, 60, 1_050), (1_051, 61, 61, 1_051)]) == nil)
    }

    @Test func aJumpOfRedisAlone() {
        #expect(watch([(1_000, 10, 10, 1_000), (5_000, 11, 11, 1_001)]) == 1_001)
        #expect(watch([(1_000, 10, 10, 1_000), (900, 11, 11, 1_001)]) == 1_001)
        #expect(watch([(1_000, 10, 10, 1_000), (5_000, 11, 11, 1_001), (1_009, 19, 19, 1_009)]) == 1_009)
    }

    @Test func aJumpOfBothIsWhereTheClockWas() {
        #expect(watch([(1_000, 10, 10, 1_000), (90_000, 12, 12, 90_000)]) == 1_002)
        #expect(watch([(90_000, 10, 10, 90_000), (1_000, 12, 12, 1_000)]) == 1_000)
    }

    @Test func clocksAgreeWithinFiveSeconds() throws {
        try SharedReplayKind.redis.check(clock: 1_005, now: 1_000)
        try SharedReplayKind.redis.check(clock: 995, now: 1_000)
        for time in [Int64(994), 1_006] {
            #expect(throws: OperationalError.self) {
                try SharedReplayKind.redis.check(clock: time, now: 1_000)
            }
        }
    }
}
