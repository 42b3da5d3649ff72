// Waiting for events. A test depends on order and never on duration: a wait ends with its event. The one limit
// means that something hangs; no test asserts how long an event took.
import Testing

#if canImport(Glibc)
    import Glibc
#else
    import Darwin
#endif

/// Looks at a condition before a wait counts as a hang: one minute's. Looks are counted and not seconds, because
/// on a busy machine the next look may be due for long before a thread is free for it.
private let mostLooks = 3_000

/// Waits until `condition` holds. If it does not within the limit, records an issue that names `event`, and
/// returns so that the test can finish.
package func until(
    _ event: String, file: String = #fileID, path: String = #filePath, line: Int = #line,
    _ condition: () async throws -> Bool
) async rethrows {
    var poll = Poll()
    while try await !condition() {
        guard let pause = poll.next() else { return recordHang(event, file: file, path: path, line: line) }
        try? await Task.sleep(for: pause)  // lint: poll
    }
}

/// The same, blocking the calling thread.
package func blockUntil(
    _ event: String, file: String = #fileID, path: String = #filePath, line: Int = #line,
    _ condition: () throws -> Bool
) rethrows {
    var poll = Poll()
    while try !condition() {
        guard let pause = poll.next() else { return recordHang(event, file: file, path: path, line: line) }
        usleep(UInt32(pause / .microseconds(1)))  // lint: poll
    }
}

private func recordHang(_ event: String, file: String, path: String, line: Int) {
    let location = SourceLocation(fileID: file, filePath: path, line: line, column: 1)
    Issue.record("hangs: \(event)", sourceLocation: location)
}

private struct Poll {
    private var looks = 0
    private var pause = Duration.microseconds(500)

    /// How long to wait before the next look; nil if it hangs.
    mutating func next() -> Duration? {
        looks += 1
        pause = min(pause * 2, .milliseconds(20))
        return looks < mostLooks ? pause : nil
    }
}
