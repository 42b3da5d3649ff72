/// The time limits of one transfer; nanoseconds of the monotonic clock.
struct TransferTimeouts {
    typealias Deadline = (time: UInt64, phase: TransportError.Phase)

    /// The limits of all transfers, in nanoseconds; `max` for none.
    struct Limits {
        var total = UInt64.max
        var connect = UInt64.max
        var idle = UInt64.max

        init() {}

        init(_ options: TransportOptions) {
            total = TransferTimeouts.nanoseconds(options.totalTimeout)
            connect = TransferTimeouts.nanoseconds(options.connectTimeout)
            idle = TransferTimeouts.nanoseconds(options.idleTimeout)
        }
    }

    private let limits: Limits
    private var total = UInt64.max
    private var connecting = UInt64.max
    private var hasPlace = false
    /// Whether the connection is established.
    var isConnected = false
    /// When the last byte was sent or received.
    var lastActivity: UInt64 = 0

    init() { limits = Limits() }

    init(_ limits: Limits, queuedAt now: UInt64) {
        self.limits = limits
        total = TransferTimeouts.sum(now, limits.total)
    }

    /// The transfer has started.
    mutating func begin(at now: UInt64) {
        hasPlace = true
        lastActivity = now
        connecting = TransferTimeouts.sum(now, limits.connect)
    }

    /// The earliest deadline.
    func deadline(waitsForServer: Bool) -> Deadline {
        guard hasPlace else { return (total, .total) }
        guard isConnected else { return total < connecting ? (total, .total) : (connecting, .connecting) }
        guard waitsForServer else { return (total, .total) }
        let idle = TransferTimeouts.sum(lastActivity, limits.idle)
        return total < idle ? (total, .total) : (idle, .idle)
    }

    private static func nanoseconds(_ limit: TransportOptions.Limit) -> UInt64 {
        guard case .within(let duration) = limit else { return .max }
        let (seconds, rest) = duration.components
        guard seconds >= 0, seconds < 1 << 32 else { return seconds < 0 ? 0 : .max }
        return UInt64(seconds) * 1_000_000_000 + UInt64(max(0, rest)) / 1_000_000_000
    }

    private static func sum(_ left: UInt64, _ right: UInt64) -> UInt64 {
        let (sum, isOver) = left.addingReportingOverflow(right)
        return isOver ? .max : sum
    }
}

/// What the transfers of one loop share during a turn of it. Confined to the transport's thread.
final class LoopTurn {
    /// When the turn began, nanoseconds of the monotonic clock.
    var time: UInt64 = 0
    /// No transfer has a deadline before this time. Bytes that are sent or received only put deadlines
    /// off, so all transfers are looked at only when this time has come.
    private(set) var earliestDeadline = UInt64.max
    /// The transfers with parts of a response of which their readers do not know yet.
    var unreported: [Transfer] = []

    /// A deadline is new, or may have become an earlier one.
    func note(_ deadline: TransferTimeouts.Deadline) {
        earliestDeadline = min(earliestDeadline, deadline.time)
    }

    /// Begins to look at all transfers anew: each is noted afterwards.
    func forgetDeadlines() { earliestDeadline = .max }
}
