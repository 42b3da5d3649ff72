import CountersignMemory

/// Waits until other loops have ended what they do at present, so that their counters include every response
/// that has been sent.
///
/// A job on each loop reports that: it runs after the jobs that a turn has left over. A call of
/// ``EventLoop/perform(_:)`` would run ahead of them.
package enum LoopBarrier {
    private static let pauseMilliseconds = 1

    /// Returns when each of `loops` has ended its callback and the jobs that it has now, or after about
    /// `milliseconds`: a loop with much work must not hold up the caller. Called on `loop`.
    package static func wait(for loops: [EventLoop], atMost milliseconds: Int, on loop: EventLoop) async {
        let count = Count(loops.count)
        for other in loops { Task(executorPreference: other) { count.decrease() } }
        let alarm = LoopAlarm(loop)
        var pauses = 0
        while count.isPositive, pauses < milliseconds / pauseMilliseconds {
            await alarm.wait(milliseconds: pauseMilliseconds)
            pauses += 1
        }
    }

    /// How many loops are still busy.
    private final class Count: Sendable {
        private let left: Locked<Int>

        init(_ left: Int) { self.left = Locked(left) }

        var isPositive: Bool { left.with { $0 > 0 } }

        func decrease() { left.with { $0 -= 1 } }
    }
}
