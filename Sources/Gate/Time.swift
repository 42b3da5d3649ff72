import Glibc

/// Where the time comes from, as an argument, so that a test can decide it.
package protocol TimeSource: Sendable {
    /// Whole Unix seconds.
    var now: Int64 { get }
}

/// The machine's clock.
package struct SystemTime: TimeSource {
    package init() {}

    package var now: Int64 {
        var time = timespec()
        clock_gettime(CLOCK_REALTIME, &time)
        return Int64(time.tv_sec)
    }
}
