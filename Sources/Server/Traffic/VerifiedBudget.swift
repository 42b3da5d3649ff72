import CountersignAuthority
import CountersignHTTP
import CountersignSeal
import CountersignWire

/// A caller that has proved something, as far as bounds that such callers share distinguish it.
enum VerifiedParty: Sendable, Equatable {
    case account(Int64)
    /// Callers with a release's key alone, which is in every copy of the app: an IPv4 address or an IPv6 /56.
    case network(NetworkAddress)

    init(_ proof: CallerProof, from address: NetworkAddress) {
        switch proof {
        case .session(let account): self = .account(account)
        case .release: self = .network(address.prefix(bits: 56))
        }
    }

    fileprivate enum Kind: Int { case session, release }

    fileprivate var kind: Kind {
        switch self {
        case .account: .session
        case .network: .release
        }
    }

    /// Unambiguous among all parties.
    fileprivate var bytes: [UInt8] {
        switch self {
        case .account(let number):
            [0] + (0..<8).map { UInt8(truncatingIfNeeded: UInt64(bitPattern: number) >> (8 * $0)) }
        case .network(let address): [1] + address.bytes
        }
    }
}

/// A bound that verified callers share, such as the lines of the log: a token bucket that no party can use up
/// while other parties ask.
///
/// While one party alone asks, it may use all. Once others ask, a party must have used less than what is left
/// to its kind, and a kind (sessions, or release keys alone) less than what is left to both. So a party that
/// seldom asks finds something left, however often and from however many networks the others ask. The rule is
/// that of ``RateCounter``; a budget that is used up costs no look-up.
struct VerifiedBudget {
    enum Sharing {
        /// For what passes by: a party that is alone may use all of it.
        case whileOthersAsk
        /// For what remains, such as kept records: another party may need it later.
        case always
    }

    private let sharing: Sharing
    /// Made when the budget is first used.
    private lazy var parties = LimitTable(
        RateLimit(burst: 1, interval: 1), capacity: VerifiedBudget.capacity,
        hashKey: KeyedHash.Key(from: SystemRandom().bytes(16)))
    /// When the bucket of both kinds, and that of each, is full: microseconds.
    private var fullAt = Int64.min
    private var kindFullAt = [Int64.min, Int64.min]
    private var kinds = Contest<VerifiedParty.Kind>()
    private var members = [Contest<VerifiedParty>(), Contest<VerifiedParty>()]

    /// Parties that are counted at a time; 16 bytes each.
    private static let capacity = 1 << 14

    init(_ sharing: Sharing) { self.sharing = sharing }

    /// Whether the party may use `cost` more; if so, counts it. `now` is in microseconds of a clock that does
    /// not go back, and so is the interval of `limit`.
    mutating func take(
        _ cost: Int = 1, of limit: RateLimit, for party: VerifiedParty, at now: Int64
    ) -> Bool {
        let kind = party.kind
        let isAlone = (
            ofKind: kinds.isAlone(kind, at: now), inKind: members[kind.rawValue].isAlone(party, at: now)
        )
        var left = limit.burst - limit.used(until: fullAt, at: now)
        guard left >= cost else { return false }
        if sharing == .always || !isAlone.ofKind {
            left -= limit.used(until: kindFullAt[kind.rawValue], at: now)
            guard left > 0 else { return false }
        }
        let key = party.bytes
        if sharing == .always || !isAlone.inKind {
            guard parties.used(key.span, limit: limit, at: now) < left else { return false }
        }
        _ = parties.debit(key.span, limit: limit, weight: cost, at: now)
        fullAt = limit.adding(cost, to: fullAt, at: now)
        kindFullAt[kind.rawValue] = limit.adding(cost, to: kindFullAt[kind.rawValue], at: now)
        return true
    }

    /// Counts a use that no party is charged for.
    mutating func charge(_ cost: Int, of limit: RateLimit, at now: Int64) {
        fullAt = limit.adding(cost, to: fullAt, at: now)
    }
}

/// Which part of a whole asked last, and when that changed.
private struct Contest<Part: Equatable> {
    private var last: Part?
    private var at = Int64.min
    private var changed: Int64?

    /// Microseconds for which a request of one part limits the others.
    private static var length: Int64 { 60_000_000 }

    /// Whether only this part has asked lately.
    mutating func isAlone(_ part: Part, at now: Int64) -> Bool {
        if let last, last != part, now - at <= Self.length { changed = now }
        (last, at) = (part, now)
        return changed.map { now - $0 > Self.length } ?? true
    }
}

extension KeyedHash.Key {
    fileprivate init(from bytes: [UInt8]) { self.init { bytes[$0] } }
}

extension RateLimit {
    fileprivate func used(until fullAt: Int64, at now: Int64) -> Int {
        guard fullAt > now else { return 0 }
        return min(Int((fullAt - now + interval - 1) / interval), burst)
    }

    fileprivate func adding(_ cost: Int, to fullAt: Int64, at now: Int64) -> Int64 {
        min(max(fullAt, now) + Int64(cost) * interval, now + Int64(burst) * interval)
    }
}
