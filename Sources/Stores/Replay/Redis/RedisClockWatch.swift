import CountersignWire

/// Compares the clock of Redis, by which entries end, with the node's clock and with the monotonic one.
///
/// A clock of Redis that jumps ahead and back ends entries early: they are lost as after a flush. While it
/// differs from a node's clock, the script refuses that node's insertions.
struct RedisClockWatch: Sendable {
    /// Seconds between the monotonic clock and the one of Redis that are not taken for a jump: both are read
    /// in whole seconds.
    private static let tolerance: Int64 = 3

    /// What was read at the last look: Redis' clock minus the monotonic one, at least and at most.
    private var last: (least: Int64, most: Int64)?
    /// The node's clock and the monotonic one at the last look.
    private var lastLook: (now: Int64, monotonic: Int64)?
    /// When Redis's clock jumped, until an epoch accounts for the jump; nil otherwise.
    private(set) var jumped: Int64?

    /// `before` and `after` are the monotonic clock's seconds around the reading of `time`.
    mutating func note(_ time: Int64, between before: Int64, and after: Int64, now: Int64) {
        let (least, most) = (time - after - 1, time - before + 1)
        if let last,
            least > last.most + RedisClockWatch.tolerance || most < last.least - RedisClockWatch.tolerance
        {
            // The node's clock may have jumped with it: the time that passed is reckoned.
            let reckoned = lastLook.map { $0.now + (after - $0.monotonic) } ?? now
            jumped = max(jumped ?? 0, min(now, reckoned))
        }
        last = (least, most)
        lastLook = (now, after)
    }

    mutating func forgetJump() { jumped = nil }

    /// The next server's clock is another one.
    mutating func forgetServer() { last = nil }
}
