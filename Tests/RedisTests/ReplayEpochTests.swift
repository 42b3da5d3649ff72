import Testing

@testable import CountersignRedis

/// What the epoch says of signatures, without a server.
@Suite struct ReplayEpochTests {
    private let epoch = ReplayEpoch(
        number: 3, identity: RedisIdentity(run: "ab", replication: "cd"), evicted: 7, floor: 1_000,
        need: ReplayRetention(window: 100, lifetime: 0))

    @Test func textAndBack() {
        var widened = epoch.widened(to: ReplayRetention(window: 300, lifetime: 9_000), now: 5_000)
        #expect(ReplayEpoch(widened.text) == widened && ReplayEpoch(epoch.text) == epoch)
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
            for: RedisIdentity(run: "ef", replication: "cd"), need: ReplayRetention(window: 20, lifetime: 0),
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
