import CountersignAuthority
import CountersignGate
import CountersignSeal
import CountersignWire
import Glibc

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
        /// The keys of the part of the party that the request comes from: of the widest part first, then of
        /// the part within it. Empty if the party has no parts.
        var shares: [[UInt8]] = []
    }

    /// What is known of the parts of a party that ask.
    private struct Contest {
        /// The part that asked last.
        var last: [UInt8]
        /// When it asked, in microseconds.
        var at: Int64
        /// When the part last changed, in microseconds; nil while all requests come from one part.
        var changed: Int64?
        var parts: PartCount
    }

    /// Of whole parties. There are as many as there are rates of releases.
    private let contests = Locked<[[UInt8]: Contest]>([:])
    /// Of parts, whose number clients choose.
    private let nestedContests = Locked<[[UInt8]: Contest]>([:])
    /// The most contests that are remembered of each of the two kinds.
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
            let parts = parts(of: count, at: now)
            var (wait, turns): (Int64?, [Part]) = (nil, [])
            switch share(of: count, for: parts, in: table, at: now) {
            case .free(let used): turns = used
            case .used(let time): wait = time
            }
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
            let limits =
                parts.map { ($0.key, RateCounter.shareLimit(of: count.rate)) }
                + turns.map { ($0.turnKey, $0.turn(of: count.rate)) }
            for (key, limit) in limits {
                if case .allowed(let debit) = table.debit(key.span, limit: limit, at: now) {
                    debits.append((table, debit))
                }
            }
        }
        return .allowed(counts.map { state(of: $0, at: now) }.min { $0.remaining < $1.remaining })
    }

    // MARK: Shares

    /// A part that a request comes from.
    private struct Part {
        let key: [UInt8]
        /// Whether other parts of the same whole ask, too.
        let isContested: Bool
        /// How many parts ask, of the whole party: the number of wholes times the number of parts of each.
        let count: Int

        /// The key under which the turns that it has taken are counted.
        var turnKey: [UInt8] { key + [1] }

        /// The limit that gives one request to each part in turn.
        func turn(of rate: RequestRate) -> RateLimit {
            RateLimit(burst: 1, interval: rate.refillMicroseconds * Int64(count))
        }
    }

    /// The widest part first.
    private func parts(of count: Count, at now: Int64) -> [Part] {
        var parts: [Part] = []
        var whole = count.key
        var number = 1
        for share in count.shares {
            let known = parts.isEmpty ? contests : nestedContests
            let asking = RateCounter.asking(for: whole, by: share, rate: count.rate, in: known, at: now)
            number = min(number * (asking ?? 1), RateCounter.mostParts)
            parts.append(Part(key: share, isContested: asking != nil, count: number))
            whole = share
        }
        return parts
    }

    private static let mostParts = 1 << 16

    private enum Share {
        /// The parts may have one more request, for which these take their turn.
        case free(turns: [Part])
        /// The parts must wait for others, for that many microseconds.
        case used(Int64)
    }

    /// While all requests come from one part, that part may use the whole rate. Once another part has asked,
    /// the use of each part must be less than what is left for all. One busy part therefore gets half of the
    /// rate, and two get a third each. A part that seldom asks finds something left, however often the others
    /// ask. The same holds for the parts of a part, with what is left for that part.
    ///
    /// If many parts ask, each has used little, and what is left would go to the part that asks most often.
    /// A reserve is therefore given in turn: of `n` parts, each may take one request from it in the time in
    /// which the rate refills `n`. A request that needs no turn takes none.
    private func share(of count: Count, for parts: [Part], in table: LimitTable, at now: Int64) -> Share {
        let refill = count.rate.refillMicroseconds
        let left =
            count.rate.burst - table.used(count.key.span, limit: RateCounter.limit(of: count.rate), at: now)
        // With nothing left, the rate itself says how long to wait.
        guard left > 0 else { return .free(turns: []) }
        func used(_ part: Part) -> Int {
            table.used(part.key.span, limit: RateCounter.shareLimit(of: count.rate), at: now)
        }
        if let widest = parts.first, widest.isContested, case let used = used(widest), used >= left {
            return .used((Int64(used - left) / 2 + 1) * refill)
        }
        var spare = left - max(count.rate.burst / RateCounter.reservePart, 1)
        var turns: [Part] = []
        for part in parts where part.isContested {
            let used = used(part)
            if used >= spare {
                guard table.used(part.turnKey.span, limit: part.turn(of: count.rate), at: now) == 0 else {
                    return .used(refill)
                }
                turns.append(part)
            }
            spare -= used
        }
        return .free(turns: turns)
    }

    /// The part of the rate's burst that is given in turn.
    private static let reservePart = 4

    /// How many parts of `whole` ask; nil while only one does.
    private static func asking(
        for whole: [UInt8], by share: [UInt8], rate: RequestRate, in known: Locked<[[UInt8]: Contest]>,
        at now: Int64
    ) -> Int? {
        let length = max(contestLength, Int64(rate.burst) * rate.refillMicroseconds)
        return known.with { contests in
            if contests.count >= mostContests, contests[whole] == nil {
                contests.removeAll(keepingCapacity: true)
            }
            var contest = contests[whole] ?? Contest(last: share, at: now, parts: PartCount(since: now))
            if contest.last != share {
                (contest.last, contest.changed) = (share, now - contest.at <= length ? now : nil)
            }
            contest.at = now
            contest.parts.add(share, at: now, within: length)
            contests[whole] = contest
            guard let changed = contest.changed, now - changed <= length else { return nil }
            let number = max(contest.parts.estimate, 2)
            // Too small a number would give away more turns than the rate has: the parts that ask
            // most often would then have all of them.
            return number == 2 ? 2 : number + number / 8 + 1
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

/// Estimates how many different parts have asked lately, in memory of fixed size: each part sets one of 512
/// bits, and the number of bits that are not set tells how many parts there were. Source: linear counting
/// (Whang, Vander-Zanden, Taylor, 1990).
private struct PartCount {
    private typealias Bits = SIMD8<UInt64>

    private static let bits = 512

    private var current = Bits()
    private var former = Bits()
    private var since: Int64

    init(since: Int64) { self.since = since }

    /// Parts count for `length` to twice that.
    mutating func add(_ part: [UInt8], at now: Int64, within length: Int64) {
        if now - since >= length {
            former = now - since >= 2 * length ? Bits() : current
            (current, since) = (Bits(), now)
        }
        // The hash has a random key, so that no client chooses the bits of its addresses.
        let bit = Int(UInt(bitPattern: part.hashValue) % UInt(PartCount.bits))
        current[bit / 64] |= 1 << UInt64(bit % 64)
    }

    var estimate: Int { max(PartCount.estimate(current), PartCount.estimate(former)) }

    private static func estimate(_ set: Bits) -> Int {
        let unset = bits - (0..<8).reduce(0) { $0 + set[$1].nonzeroBitCount }
        return Int((Double(bits) * log(Double(bits) / Double(max(unset, 1)))).rounded())
    }
}
