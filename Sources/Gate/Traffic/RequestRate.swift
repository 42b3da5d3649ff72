/// How many requests one party may make: a token bucket that holds a burst, and refills evenly.
package struct RequestRate: Sendable, Equatable {
    /// The time that a rate counts requests in.
    package enum Unit: String, Sendable, CaseIterable {
        case second, minute, hour, day

        package var seconds: Int {
            switch self {
            case .second: 1
            case .minute: 60
            case .hour: 3_600
            case .day: 86_400
            }
        }
    }

    /// 1 to ``most``.
    package let count: Int
    package let unit: Unit
    /// Requests that may come at once, 1 to ``most``.
    package let burst: Int

    /// A request every microsecond is the finest refill that the buckets count.
    package static let most = 1_000_000

    /// From `20/second` or `100/minute,burst=20`; nil for other texts. Without a burst, as many requests may
    /// come at once as in one unit.
    package init?(_ text: String) {
        let parts = text.split(separator: ",", omittingEmptySubsequences: false)
        let sides = parts[0].split(separator: "/", omittingEmptySubsequences: false)
        guard sides.count == 2, let count = RequestRate.number(sides[0]),
            let unit = Unit(rawValue: String(sides[1]))
        else { return nil }
        var burst = count
        switch parts.count {
        case 1: break
        case 2:
            guard parts[1].hasPrefix("burst="), let given = RequestRate.number(parts[1].dropFirst(6)) else {
                return nil
            }
            burst = given
        default: return nil
        }
        self.init(count: count, unit: unit, burst: burst)
    }

    private init(count: Int, unit: Unit, burst: Int) {
        (self.count, self.unit, self.burst) = (count, unit, burst)
    }

    /// The canonical form: ``init(_:)`` reads it as the same rate.
    package var text: String { "\(count)/\(unit.rawValue)" + (burst == count ? "" : ",burst=\(burst)") }

    /// Microseconds in which one request is refilled, at least 1.
    package var refillMicroseconds: Int64 { Int64(unit.seconds) * 1_000_000 / Int64(count) }

    private static func number(_ text: Substring) -> Int? {
        guard !text.isEmpty, text.utf8.allSatisfy({ (0x30...0x39).contains($0) }), let number = Int(text),
            (1...most).contains(number)
        else { return nil }
        return number
    }
}

/// The rates of the parties that a request counts to.
package struct RequestRates: Sendable, Equatable {
    /// A party that requests count to.
    package enum Subject: String, Sendable, CaseIterable {
        /// The signed-in account. A request without a session has none.
        case account
        /// The release that signed, for all its callers together.
        case release
        /// The client's IPv4 address or IPv6 /64.
        case address
    }

    package var account: RequestRate?
    package var release: RequestRate?
    package var address: RequestRate?

    package init() {}

    package subscript(subject: Subject) -> RequestRate? {
        get {
            switch subject {
            case .account: account
            case .release: release
            case .address: address
            }
        }
        set {
            switch subject {
            case .account: account = newValue
            case .release: release = newValue
            case .address: address = newValue
            }
        }
    }

    package var isEmpty: Bool { account == nil && release == nil && address == nil }
}
