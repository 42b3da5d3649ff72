import CountersignMemory
import CountersignTransport
import CountersignTrust

/// A clock that stands still until a test moves it. A test can advance the wall clock and the monotonic
/// clock together, or set the wall clock alone, as a user can.
public final class ManualClock: Sendable {
    private struct Sleeper {
        let end: UInt64
        let waiter: CheckedContinuation<Void, any Error>
    }

    private struct State {
        /// Nanoseconds since 1970 while the monotonic clock shows 0.
        var epoch: Int64
        var elapsed: UInt64 = 0
        var sleepers: [Int: Sleeper] = [:]
        var cancelled: Set<Int> = []
        var lastNumber = 0
    }

    private let state: Locked<State>

    /// Makes a clock at `wall`, in whole Unix seconds; by default at the first second of 2026.
    public init(wall: Int64 = 1_767_225_600) { state = Locked(State(epoch: wall * 1_000_000_000)) }

    /// The clock for the code under test.
    public var deviceClock: DeviceClock { DeviceClock(wall: { self.wall }, monotonic: { self.monotonic }) }

    /// The wall clock in whole Unix seconds.
    public var wall: Int64 { state.with { ($0.epoch + Int64($0.elapsed)) / 1_000_000_000 } }

    /// The monotonic clock: nanoseconds since the clock was made.
    public var monotonic: UInt64 { state.with { $0.elapsed } }

    /// Advances both clocks, and resumes the tasks whose sleep has ended.
    public func advance(by duration: Duration) {
        let (seconds, attoseconds) = duration.components
        let woken = state.with { state -> [Sleeper] in
            state.elapsed += UInt64(max(0, seconds * 1_000_000_000 + attoseconds / 1_000_000_000))
            let due = state.sleepers.filter { $0.value.end <= state.elapsed }
            for number in due.keys { state.sleepers[number] = nil }
            return due.values.sorted { $0.end < $1.end }
        }
        for sleeper in woken { sleeper.waiter.resume() }
    }

    /// Sets the wall clock, forward or back. The monotonic clock does not move.
    public func setWall(_ seconds: Int64) {
        state.with { $0.epoch = seconds * 1_000_000_000 - Int64($0.elapsed) }
    }

    /// The number of tasks in ``sleep(for:)``.
    public var sleepers: Int { state.with { $0.sleepers.count } }

    /// Waits until the clock has advanced by `duration`. Throws `CancellationError` if the task is
    /// cancelled.
    public func sleep(for duration: Duration) async throws {
        guard duration > .zero else { return }
        let (seconds, attoseconds) = duration.components
        let number = state.with { state in
            state.lastNumber += 1
            return state.lastNumber
        }
        try await withTaskCancellationHandler {
            try await withCheckedThrowingContinuation { waiter in
                let isCancelled = state.with { state in
                    guard state.cancelled.remove(number) == nil else { return true }
                    let end = state.elapsed + UInt64(seconds * 1_000_000_000 + attoseconds / 1_000_000_000)
                    state.sleepers[number] = Sleeper(end: end, waiter: waiter)
                    return false
                }
                if isCancelled { waiter.resume(throwing: CancellationError()) }
            }
        } onCancel: {
            let sleeper = state.with { state -> Sleeper? in
                guard let sleeper = state.sleepers.removeValue(forKey: number) else {
                    state.cancelled.insert(number)
                    return nil
                }
                return sleeper
            }
            sleeper?.waiter.resume(throwing: CancellationError())
        }
    }
}
