#if canImport(Darwin)
    import Darwin
#else
    import Glibc
#endif

/// Where time comes from, as an argument, so that a test can decide it.
public struct DeviceClock: Sendable {
    /// Whole Unix seconds: by these certificates are judged.
    public var wall: @Sendable () -> Int64
    /// Nanoseconds from anywhere, never backwards: by these time-outs are.
    public var monotonic: @Sendable () -> UInt64

    /// From two readings.
    public init(wall: @escaping @Sendable () -> Int64, monotonic: @escaping @Sendable () -> UInt64) {
        self.wall = wall
        self.monotonic = monotonic
    }

    /// The machine's clocks.
    public static let system = DeviceClock(
        wall: { Int64(time(nil)) },
        monotonic: {
            var now = timespec()
            clock_gettime(CLOCK_MONOTONIC, &now)
            return UInt64(now.tv_sec) * 1_000_000_000 + UInt64(now.tv_nsec)
        })
}
