import CountersignTestKit
import CountersignTransport
import Testing
import Waiting

@Suite struct ManualClockTests {
    @Test func timeGoesByOnBothClocksAndIsSetOnOne() {
        let clock = ManualClock(wall: 1000)
        let (wall, monotonic) = (clock.deviceClock.wall, clock.deviceClock.monotonic)
        clock.advance(by: .milliseconds(1500))
        #expect(wall() == 1001 && monotonic() == 1_500_000_000)
        clock.setWall(500)
        #expect(wall() == 500 && monotonic() == 1_500_000_000)
        clock.advance(by: .milliseconds(999))
        #expect(wall() == 500 && monotonic() == 2_499_000_000)
        clock.advance(by: .milliseconds(1))
        #expect(wall() == 501)
    }

    @Test func whoSleepsIsWokenWhenItIsTime() async throws {
        let clock = ManualClock()
        async let long: Void = clock.sleep(for: .seconds(10))
        async let short: Void = clock.sleep(for: .seconds(5))
        await until("two sleepers") { clock.sleepers == 2 }
        clock.advance(by: .seconds(5))
        try await short
        #expect(clock.sleepers == 1)
        clock.advance(by: .seconds(5))
        try await long
    }

    @Test func aCancelledSleepEnds() async {
        let clock = ManualClock()
        let task = Task { try await clock.sleep(for: .seconds(10)) }
        task.cancel()
        await #expect(throws: CancellationError.self) { try await task.value }
        #expect(clock.sleepers == 0)
    }
}
