import Synchronization

@testable import CountersignClient

/// Clocks that are told what they say.
final class FakeTime: ClientTime {
    private struct Clocks {
        var wall: Int64 = 1_800_000_000
        var milliseconds: Int64 = 0
        /// Milliseconds between two looks at the monotonic clock.
        var delay: Int64 = 0
    }

    private let clocks = Mutex(Clocks())

    var now: Int64 { clocks.withLock { $0.wall } }

    var milliseconds: Int64 {
        clocks.withLock { clocks in
            clocks.milliseconds += clocks.delay
            return clocks.milliseconds
        }
    }

    /// Time goes by.
    func pass(_ seconds: Int64) {
        clocks.withLock { clocks in
            clocks.wall += seconds
            clocks.milliseconds += seconds * 1_000
        }
    }

    /// Changes the device's wall clock by `seconds`.
    func set(by seconds: Int64) { clocks.withLock { $0.wall += seconds } }

    func delay(_ milliseconds: Int64) { clocks.withLock { $0.delay = milliseconds } }
}
