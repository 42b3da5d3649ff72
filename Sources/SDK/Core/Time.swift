import CountersignClient
import CountersignTransport

/// A device's clocks as the protocol's steps ask them.
struct Time: ClientTime {
    let clock: DeviceClock

    var now: Int64 { clock.wall() }

    var milliseconds: Int64 { Int64(clock.monotonic() / 1_000_000) }
}

extension DeviceClock {
    /// How long ago `start` was, a reading of the monotonic clock.
    func elapsed(since start: UInt64) -> Duration { .nanoseconds(Int64(monotonic() - start)) }
}
