import CountersignAuthority
import CountersignHTTP
import CountersignWire

/// Judges whether the store can be read and written, and reports it to ``Readiness``. The main thread calls
/// ``turn(reading:writing:)`` every other second.
///
/// Reads are judged by what the main thread reads anyway. Writes are judged by the writer's own work: only after it has
/// failed does each turn write a row of its own, until that succeeds. Two failing turns in a row make the process not
/// ready; one may be a lock that another process held.
final class StoreReadiness: Sendable {
    private static let failuresUntilDown = 2

    private let readiness: Readiness
    private let hasWriterFailed = Locked(false)
    private let failures = Locked(0)

    init(_ readiness: Readiness) { self.readiness = readiness }

    /// For the writer's thread: a change could not be made durable.
    func writerDidFail() { hasWriterFailed.with { $0 = true } }

    /// One look. `reading` is what came of the turn's reads; `writing` writes a row.
    func turn(reading: Fault?, writing: () throws(Fault) -> Void) {
        var fault = reading
        if fault == nil, hasWriterFailed.with({ $0 }) {
            do throws(Fault) {
                try writing()
                hasWriterFailed.with { $0 = false }
            } catch {
                fault = error
            }
        }
        let count = failures.with { failures in
            failures = fault == nil ? 0 : min(failures + 1, StoreReadiness.failuresUntilDown)
            return failures
        }
        if count == 0 { readiness.clear(.store) }
        if count >= StoreReadiness.failuresUntilDown, let fault { readiness.set(.store, detail: fault.message) }
    }
}
