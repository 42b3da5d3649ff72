import CountersignAuthority
import CountersignGate
import CountersignSeal
import CountersignWire

/// Counts requests by party, for all loops, in memory of fixed size.
///
/// A party that no other request has named takes the place of the one whose allowance is nearest to full, and
/// inherits its use (``LimitTable``), as far as its own rate allows. So rates of one unit have a table of
/// their own: a flood of addresses under a rate by the second erases no count by the day. The counts are
/// this process's.
final class RateCounter: Sendable {
    /// Parties of one unit that are counted at a time; 16 bytes each.
    private static let capacity = 1 << 16

    private let random: any RandomSource
    /// Made when a rate of the unit is first used.
    private let tables = Locked<[RequestRate.Unit: LimitTable]>([:])

    init(random: any RandomSource = SystemRandom()) { self.random = random }

    private func table(of rate: RequestRate) -> LimitTable {
        tables.with { tables in
            if let table = tables[rate.unit] { return table }
            let bytes = random.bytes(16)
            let table = LimitTable(
                RateCounter.limit(of: rate), capacity: RateCounter.capacity,
                hashKey: KeyedHash.Key { bytes[$0] })
            tables[rate.unit] = table
            return table
        }
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
        var debits: [(table: LimitTable, debit: LimitTable.Debit)] = []
        for count in counts {
            let table = table(of: count.rate)
            switch table.debit(count.key.span, limit: RateCounter.limit(of: count.rate), at: now) {
            case .allowed(let debit): debits.append((table, debit))
            case .refused(let wait):
                for (table, debit) in debits { table.refund(debit, at: now) }
                return .refused(
                    state(of: count, at: now), wait: RateCounter.seconds(fromMicroseconds: max(wait, 1)))
            }
        }
        return .allowed(counts.map { state(of: $0, at: now) }.min { $0.remaining < $1.remaining })
    }

    private func state(of count: Count, at now: Int64) -> State {
        let used = table(of: count.rate).used(
            count.key.span, limit: RateCounter.limit(of: count.rate), at: now)
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
