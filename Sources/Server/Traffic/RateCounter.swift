import CountersignAuthority
import CountersignGate
import CountersignSeal
import CountersignWire

/// Counts requests by party, for all loops, in memory of fixed size.
///
/// A party that no other request has named takes the place of the one whose allowance is nearest to full, and
/// inherits its use (``LimitTable``): a flood of addresses erases no count. The counts are this process's.
final class RateCounter: Sendable {
    /// Parties that are counted at a time; 16 bytes each.
    private static let capacity = 1 << 16

    private let table: LimitTable

    init(random: any RandomSource = SystemRandom()) {
        let bytes = random.bytes(16)
        table = LimitTable(
            RateCounter.limit(of: RequestRate.unlimited), capacity: RateCounter.capacity,
            hashKey: KeyedHash.Key { bytes[$0] })
    }

    /// One party and its rate.
    struct Count {
        /// As the response's fields name it: `account`, or `route-account` for a rate of a route.
        let name: String
        let rate: RequestRate
        /// Unambiguous among all parties.
        let key: [UInt8]
    }

    /// What remains of the rate that is nearest to its end.
    struct State: Equatable {
        let name: String
        let rate: RequestRate
        let remaining: Int
        /// Whole seconds until the allowance is full, rounded up.
        let reset: Int
    }

    enum Outcome: Equatable {
        case allowed(State?)
        /// Nothing was counted. The wait is in whole seconds, rounded up.
        case refused(State, wait: Int)
    }

    /// Counts one request to each party, or to none of them. `now` is in microseconds of a monotonic clock.
    func take(_ counts: [Count], at now: Int64) -> Outcome {
        var debits: [LimitTable.Debit] = []
        for count in counts {
            switch table.debit(count.key.span, limit: RateCounter.limit(of: count.rate), at: now) {
            case .allowed(let debit): debits.append(debit)
            case .refused(let wait):
                for debit in debits { table.refund(debit, at: now) }
                return .refused(
                    state(of: count, at: now), wait: RateCounter.seconds(fromMicroseconds: max(wait, 1)))
            }
        }
        return .allowed(counts.map { state(of: $0, at: now) }.min { $0.remaining < $1.remaining })
    }

    private func state(of count: Count, at now: Int64) -> State {
        let used = table.used(count.key.span, limit: RateCounter.limit(of: count.rate), at: now)
        return State(
            name: count.name, rate: count.rate, remaining: max(count.rate.burst - used, 0),
            reset: RateCounter.seconds(
                fromMicroseconds: Int64(used) * count.rate.refillMicroseconds))
    }

    private static func limit(of rate: RequestRate) -> RateLimit {
        RateLimit(burst: rate.burst, interval: rate.refillMicroseconds)
    }

    private static func seconds(fromMicroseconds time: Int64) -> Int { Int((time + 999_999) / 1_000_000) }
}
