import CountersignAuthority
import CountersignHTTP
import CountersignWire
import Glibc

/// Decides which events of callers that have proved nothing are written as a line of their own: the first few
/// of each cause and address in a time window. The sampler counts the others, and reports the counts when the
/// window closes.
///
/// Its memory is bounded: beyond `mostSubjects` pairs of cause and address in one window, events are counted
/// by cause alone, and each cause has its first few lines. One IPv6 network fills a small part of the table,
/// and has no such lines beyond it. Every event that is not written is in exactly one of the counts.
struct RefusalSampler {
    struct Settings: Sendable, Equatable {
        /// Lines for each cause and address in one window. 0 turns sampling off: every event is written.
        var burst = 20
        /// Seconds.
        var window = 10
        /// Lines for all causes and addresses together in one window; a long line counts as several. Beyond
        /// it each pair has its first two lines only.
        var mostLines = 2000
        /// The lines of a window, on average, for callers that have proved something; a long line counts as
        /// several. Beyond it, each pair of cause and address has two more. With 0, every event is written.
        var verifiedLines = 50_000
        /// Pairs of cause and address that are counted separately in one window.
        var mostSubjects = 1024
        /// The same for one IPv6 network of 56 or 48 bits, all of whose addresses one party may own.
        var mostSubjectsOfNetwork = 64
    }

    /// Why an event happened: the refusal's code, why an answer was not delivered, or the status of an answer
    /// that was.
    enum Cause: Hashable, Sendable {
        case refused(Refusal.Code)
        case failed(DeliveryFailure)
        case answered(status: Int)

        var name: String {
            switch self {
            case .refused(let code): code.name
            case .failed(let failure): failure.rawValue
            case .answered: "ok"
            }
        }
    }

    struct Subject: Hashable, Sendable {
        var cause: Cause
        /// An IPv4 address, or the first 64 bits of an IPv6 address: a client with one address of such a
        /// network has them all.
        var address: NetworkAddress
    }

    /// What one window left out.
    struct Summary: Equatable, Sendable {
        /// How many events of each pair were not written.
        var subjects: [Subject: Int] = [:]
        /// The same for pairs without a place in the table, by cause.
        var others: [Cause: Int] = [:]
        /// An estimate of the number of addresses behind `others`.
        var otherAddresses = 0

        var isEmpty: Bool { subjects.isEmpty && others.isEmpty }
    }

    private struct Count {
        var written = 0
        var leftOut = 0
    }

    fileprivate static let sureLines = 2

    let settings: Settings
    private var windowEnd = Int64.min
    private var lines = 0
    private var counts: [Subject: Count] = [:]
    /// How many pairs are in the table of each IPv6 network of 56 and of 48 bits.
    private var networks: [NetworkAddress: Int] = [:]
    private var others: [Cause: Count] = [:]
    private var otherAddresses = AddressEstimate()

    init(_ settings: Settings) { self.settings = settings }

    /// Whether this event is written. `now` is in seconds of any clock that does not go back.
    mutating func admit(_ subject: Subject, now: Int64) -> Bool {
        guard settings.burst > 0 else { return true }
        if windowEnd <= now { windowEnd = now + Int64(settings.window) }
        if var count = counts[subject] {
            defer { counts[subject] = count }
            return take(from: &count)
        }
        let site = RefusalSampler.networks(around: subject.address)
        guard site.allSatisfy({ networks[$0, default: 0] < settings.mostSubjectsOfNetwork }) else {
            others[subject.cause, default: Count()].leftOut += 1
            otherAddresses.add(subject.address)
            return false
        }
        guard counts.count < settings.mostSubjects else {
            var count = others[subject.cause, default: Count()]
            let isWritten = take(from: &count)
            others[subject.cause] = count
            if !isWritten { otherAddresses.add(subject.address) }
            return isWritten
        }
        for network in site { networks[network, default: 0] += 1 }
        var count = Count()
        defer { counts[subject] = count }
        return take(from: &count)
    }

    /// Charges a line that was admitted by its length: it counts as one more line for each
    /// ``usualBytes``.
    mutating func charge(bytes: Int) { lines += bytes / RefusalSampler.usualBytes }

    /// A length that most lines do not have.
    static let usualBytes = 1_024

    /// Counts one event; true where there is room for its line.
    private mutating func take(from count: inout Count) -> Bool {
        let room = lines < settings.mostLines ? settings.burst : min(settings.burst, RefusalSampler.sureLines)
        guard count.written < room else {
            count.leftOut += 1
            return false
        }
        count.written += 1
        lines += 1
        return true
    }

    /// Of 56 bits and of 48; none for IPv4.
    private static func networks(around address: NetworkAddress) -> [NetworkAddress] {
        address.isIPv6 ? [address.prefix(bits: 56), address.prefix(bits: 48)] : []
    }

    /// Whether a window that has left something out is over: then call ``close()`` before the next
    /// ``admit(_:now:)``.
    func isOver(now: Int64) -> Bool { !counts.isEmpty && windowEnd <= now }

    /// Ends the window, whether or not its time is over.
    mutating func close() -> Summary {
        var summary = Summary()
        for (subject, count) in counts where count.leftOut > 0 { summary.subjects[subject] = count.leftOut }
        for (cause, count) in others where count.leftOut > 0 { summary.others[cause] = count.leftOut }
        summary.otherAddresses = summary.others.isEmpty ? 0 : otherAddresses.count
        counts.removeAll(keepingCapacity: true)
        networks.removeAll(keepingCapacity: true)
        others.removeAll()
        otherAddresses = AddressEstimate()
        (lines, windowEnd) = (0, Int64.min)
        return summary
    }
}

/// Samples the events of callers that have proved something. A release key is in every copy of the app, so a
/// caller that has it could otherwise fill the disk with lines. Up to the bound, an event costs one addition.
///
/// Half of the bound is for all. The other half is shared (``VerifiedBudget``): one caller that has used up
/// the first half leaves lines to those that seldom need one.
struct VerifiedSampler {
    private let window: Int64
    private let most: Int
    private var windowEnd = Int64.min
    private var lines = 0
    private let limit: RateLimit
    private var shared = VerifiedBudget(.whileOthersAsk)
    private var latest = Int64.min
    private var sampler: RefusalSampler

    init(_ settings: RefusalSampler.Settings) {
        (window, most) = (Int64(settings.window), settings.verifiedLines)
        let half = max(settings.verifiedLines - settings.verifiedLines / 2, 1)
        limit = RateLimit(burst: half, interval: window * 1_000_000 / Int64(half))
        var rest = settings
        rest.burst = RefusalSampler.sureLines
        sampler = RefusalSampler(rest)
    }

    /// `proof` is what the event's caller has proved. `now` is in seconds of a clock that does not go back.
    mutating func admit(_ subject: RefusalSampler.Subject, of proof: CallerProof, now: Int64) -> Bool {
        guard most > 0 else { return true }
        if windowEnd <= now { (windowEnd, lines) = (now + window, 0) }
        latest = now
        if lines < most / 2 {
            lines += 1
            return true
        }
        let party = VerifiedParty(proof, from: subject.address)
        return shared.take(of: limit, for: party, at: now * 1_000_000) || sampler.admit(subject, now: now)
    }

    /// As ``RefusalSampler/charge(bytes:)``.
    mutating func charge(bytes: Int) {
        let cost = bytes / RefusalSampler.usualBytes
        if lines < most / 2 { lines += cost } else { shared.charge(cost, of: limit, at: latest * 1_000_000) }
    }

    func isOver(now: Int64) -> Bool { sampler.isOver(now: now) }

    mutating func close() -> RefusalSampler.Summary { sampler.close() }
}

/// An estimate of the number of different addresses, in 1 KiB: each address sets one bit of 8,192 by its
/// hash, and the share of zero bits gives the number (linear counting, Whang et al. 1990). The estimate
/// saturates at some 70,000.
private struct AddressEstimate {
    private static let bits = 8192
    private var words: [UInt64] = []

    mutating func add(_ address: NetworkAddress) {
        if words.isEmpty { words = [UInt64](repeating: 0, count: AddressEstimate.bits / 64) }
        let place = Int(UInt(bitPattern: address.hashValue) % UInt(AddressEstimate.bits))
        words[place / 64] |= 1 << UInt64(place % 64)
    }

    var count: Int {
        let zeros = AddressEstimate.bits - words.reduce(0) { $0 + $1.nonzeroBitCount }
        let share = Double(max(zeros, 1)) / Double(AddressEstimate.bits)
        return Int((-Double(AddressEstimate.bits) * log(share)).rounded())
    }
}
