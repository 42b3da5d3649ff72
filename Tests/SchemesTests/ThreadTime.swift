#if canImport(Darwin)
    import Darwin
#else
    import Glibc
#endif

/// How long the shortest of some runs keeps this thread busy, in nanoseconds: what else the machine does is
/// not counted.
func shortestTime(ofRuns count: Int, _ body: () throws -> Void) rethrows -> UInt64 {
    try (0..<count).map { _ in
        let began = threadNanoseconds()
        try body()
        return threadNanoseconds() - began
    }.min() ?? 0
}

private func threadNanoseconds() -> UInt64 {
    var time = timespec()
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time)
    return UInt64(time.tv_sec) * 1_000_000_000 + UInt64(time.tv_nsec)
}
