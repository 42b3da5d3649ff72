import CountersignMemory
import CountersignTransport
import CountersignTrust

/// Time that stands still until a test moves it. The wall clock, which users set, and the monotonic one, which nobody does, are moved
/// together or apart.
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

    /// `wall` is whole Unix seconds; the first second of 2026, unless told otherwise.
    public init(wall: Int64 = 1_767_225_600) { state = Locked(State(epoch: wall * 1_000_000_000)) }

    /// What the code under test is given.
    public var deviceClock: DeviceClock { DeviceClock(wall: { self.wall }, monotonic: { self.monotonic }) }

    /// Whole Unix seconds.
    public var wall: Int64 { state.with { ($0.epoch + Int64($0.elapsed)) / 1_000_000_000 } }

    /// Nanoseconds since the clock was made.
    public var monotonic: UInt64 { state.with { $0.elapsed } }

    /// Time goes by, on both clocks; who has slept long enough is woken.
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

    /// Somebody sets the wall clock, forward or back. No time goes by.
    public func setWall(_ seconds: Int64) {
        state.with { $0.epoch = seconds * 1_000_000_000 - Int64($0.elapsed) }
    }

    /// How many tasks are in ``sleep(for:)``.
    public var sleepers: Int { state.with { $0.sleepers.count } }

    /// Waits until the clock was advanced by so much. Throws `CancellationError` where the task is cancelled.
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
