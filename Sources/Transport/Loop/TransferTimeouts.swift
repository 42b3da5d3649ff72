/// The time limits of one transfer; nanoseconds of the monotonic clock.
struct TransferTimeouts {
    typealias Deadline = (time: UInt64, phase: TransportError.Phase)

    private var total = UInt64.max
    private var connecting = UInt64.max
    private var connectTimeout = UInt64.max
    private var idleTimeout = UInt64.max
    private var hasPlace = false
    /// Whether the connection is established.
    var isConnected = false
    /// When the last byte was sent or received.
    var lastActivity: UInt64 = 0

    init() {}

    init(_ options: TransportOptions, queuedAt now: UInt64) {
        total = TransferTimeouts.sum(now, TransferTimeouts.nanoseconds(options.totalTimeout))
        connectTimeout = TransferTimeouts.nanoseconds(options.connectTimeout)
        idleTimeout = TransferTimeouts.nanoseconds(options.idleTimeout)
    }

    /// The transfer has started.
    mutating func begin(at now: UInt64) {
        hasPlace = true
        lastActivity = now
        connecting = TransferTimeouts.sum(now, connectTimeout)
    }

    /// The earliest deadline.
    func deadline(waitsForServer: Bool) -> Deadline {
        guard hasPlace else { return (total, .total) }
        guard isConnected else { return total < connecting ? (total, .total) : (connecting, .connecting) }
        guard waitsForServer else { return (total, .total) }
        let idle = TransferTimeouts.sum(lastActivity, idleTimeout)
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
