import Glibc

/// A clock that only goes forward, as an argument, so that a test can decide it.
package protocol MonotonicClock: Sendable {
    /// From an arbitrary start.
    var nanoseconds: UInt64 { get }
}

/// The machine's, which nobody sets.
package struct SystemMonotonicClock: MonotonicClock {
    package init() {}

    package var nanoseconds: UInt64 {
        var time = timespec()
        clock_gettime(CLOCK_MONOTONIC, &time)
        return UInt64(time.tv_sec) * 1_000_000_000 + UInt64(time.tv_nsec)
    }
}
