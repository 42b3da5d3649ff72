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
        /// The key of the part of the party that the request comes from; nil if the party has no parts.
        var share: [UInt8]?
    }

    /// The part of a party that asked last, and when the part last changed.
    private struct Contest {
        var last: [UInt8]
        /// When it asked, in microseconds.
        var at: Int64
        /// In microseconds; nil while all requests come from one part.
        var changed: Int64?
    }

    private let contests = Locked<[[UInt8]: Contest]>([:])
    /// The most parties whose contest is remembered.
    private static let mostContests = 4_096
    /// Microseconds for which a request of one part limits the other parts.
    private static let contestLength: Int64 = 60_000_000

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
            var wait = waitForShare(of: count, in: table, at: now)
            if wait == nil {
                switch table.debit(count.key.span, limit: RateCounter.limit(of: count.rate), at: now) {
                case .allowed(let debit): debits.append((table, debit))
                case .refused(let time): wait = time
                }
            }
            if let wait {
                for (table, debit) in debits { table.refund(debit, at: now) }
                return .refused(
                    state(of: count, at: now), wait: RateCounter.seconds(fromMicroseconds: max(wait, 1)))
            }
            if let share = count.share,
                case .allowed(let debit) = table.debit(
                    share.span, limit: RateCounter.shareLimit(of: count.rate), at: now)
            {
                debits.append((table, debit))
            }
        }
        return .allowed(counts.map { state(of: $0, at: now) }.min { $0.remaining < $1.remaining })
    }

    // MARK: Shares

    /// Microseconds that this part of the party must wait for others; nil if it need not wait.
    ///
    /// While all requests come from one part, that part may use the whole rate. Once another part has asked,
    /// the use of each part must be less than what is left for all. One busy part therefore gets half of the
    /// rate, and two get a third each. A part that seldom asks finds something left, however often the others
    /// ask.
    private func waitForShare(of count: Count, in table: LimitTable, at now: Int64) -> Int64? {
        guard let share = count.share, isContested(count, by: share, at: now) else { return nil }
        let used = table.used(share.span, limit: RateCounter.shareLimit(of: count.rate), at: now)
        let left =
            count.rate.burst - table.used(count.key.span, limit: RateCounter.limit(of: count.rate), at: now)
        // With nothing left, the rate itself says how long to wait.
        guard left > 0, used >= left else { return nil }
        return (Int64(used - left) / 2 + 1) * count.rate.refillMicroseconds
    }

    private func isContested(_ count: Count, by share: [UInt8], at now: Int64) -> Bool {
        let length = max(
            RateCounter.contestLength, Int64(count.rate.burst) * count.rate.refillMicroseconds)
        return contests.with { contests in
            if contests.count >= RateCounter.mostContests, contests[count.key] == nil {
                contests.removeAll(keepingCapacity: true)
            }
            var contest = contests[count.key] ?? Contest(last: share, at: now)
            if contest.last != share {
                (contest.last, contest.changed) = (share, now - contest.at <= length ? now : nil)
            }
            contest.at = now
            contests[count.key] = contest
            return contest.changed.map { now - $0 <= length } ?? false
        }
    }

    /// The limit that measures the use of one part. For a small rate, it refills half as fast as the rate, so
    /// that a part that has just used the only request is not the first to use the next one.
    private static func shareLimit(of rate: RequestRate) -> RateLimit {
        RateLimit(
            burst: rate.burst, interval: rate.refillMicroseconds * (rate.burst < 8 ? 2 : 1))
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
