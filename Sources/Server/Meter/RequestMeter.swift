import CountersignAuthority
import CountersignGate
import CountersignMemory
import CountersignSchemes
import CountersignThreads
import CountersignWire
import Synchronization

/// How many requests each release has sent, by outcome, over all loops, since the process began.
///
/// The lock is taken only when a loop meets a new release, a scrape reads the counters, or the meter is
/// written to the store.
package final class RequestMeter: Sendable {
    private let cells = Locked<[ReleaseCounters]>([])
    private let unavailable = Atomic<UInt64>(0)
    private let series = Locked<[DurationSeries]>([])
    private let loads = Locked<[LoopLoad]>([])
    let operations = AuthorityOperationCounter()

    package init() {}

    /// Responses `unavailable`, also to callers that the gate admitted and that count as accepted.
    var unavailableResponses: UInt64 { unavailable.load(ordering: .relaxed) }

    fileprivate func countUnavailable() { unavailable.add(1, ordering: .relaxed) }

    /// Cells for one loop to count in.
    func makeCells(
        of release: AppRelease?, app: String? = nil, durations: LoopDurations
    ) -> ReleaseCounters {
        let made = ReleaseCounters(of: release, app: app, durations: durations)
        cells.with { $0.append(made) }
        return made
    }

    /// A histogram for one loop to record in.
    func makeHistogram(of subject: DurationSeries.Subject) -> DurationHistogram {
        let made = DurationSeries(subject: subject, histogram: DurationHistogram())
        series.with { $0.append(made) }
        return made.histogram
    }

    fileprivate func makeLoad() -> LoopLoad {
        let made = LoopLoad()
        loads.with { $0.append(made) }
        return made
    }

    /// Requests that have begun and not ended, over all loops.
    var requestsInFlight: Int { loads.with { $0 }.reduce(0) { $0 + $1.current } }

    /// The durations of all loops together.
    func durations() -> [DurationSeries.Subject: DurationHistogram.Snapshot] {
        var sums: [DurationSeries.Subject: DurationHistogram.Snapshot] = [:]
        for one in series.with({ $0 }) {
            sums[one.subject, default: DurationHistogram.Snapshot()].add(one.histogram.snapshot)
        }
        return sums
    }

    func totals() -> [MeterEntry.Subject: UInt64] {
        var totals: [MeterEntry.Subject: UInt64] = [:]
        for cells in cells.with({ $0 }) { cells.add(to: &totals) }
        return totals
    }
}

/// What one loop has counted of one release, by outcome, since the process began.
///
/// Safe to share: only its loop writes, and a reader sees each number whole. With a single writer, counting
/// is a load and a store; no other loop waits for the cache line.
final class ReleaseCounters: @unchecked Sendable {
    let app: String
    let release: String
    let scheme: String
    /// The histograms of the app and scheme. Only the loop uses this property.
    let durations: LoopDurations
    private let cells: UnsafeMutablePointer<Atomic<UInt64>>

    /// `release` is nil for requests that name none; `app` is nil for requests whose app is unknown.
    init(of release: AppRelease?, app: String? = nil, durations: LoopDurations) {
        self.durations = durations
        self.app = release?.app ?? app ?? ""
        self.release = release?.id.description ?? ""
        scheme = release?.scheme.rawValue ?? ""
        cells = .allocate(capacity: MeterOutcome.all.count)
        for index in MeterOutcome.all.indices { (cells + index).initialize(to: Atomic(0)) }
    }

    deinit {
        cells.deinitialize(count: MeterOutcome.all.count)
        cells.deallocate()
    }

    /// Call on the loop that owns these counters.
    @discardableResult
    func count(_ outcome: MeterOutcome) -> CountedRequest {
        let cell = cells + ReleaseCounters.place(of: outcome)
        cell.pointee.store(cell.pointee.load(ordering: .relaxed) &+ 1, ordering: .relaxed)
        return CountedRequest(counters: self, outcome: outcome)
    }

    /// Adds the counts that are not zero to `totals`.
    func add(to totals: inout [MeterEntry.Subject: UInt64]) {
        for (index, outcome) in MeterOutcome.all.enumerated() {
            let count = cells[index].load(ordering: .relaxed)
            guard count > 0 else { continue }
            let subject = MeterEntry.Subject(app: app, release: release, scheme: scheme, outcome: outcome)
            totals[subject, default: 0] += count
        }
    }

    static func place(of outcome: MeterOutcome) -> Int {
        switch outcome {
        case .accepted: 0
        case .acceptedUnderNextKey: 1
        case .acceptedByTicket: 2
        case .open: 3
        // The order of the codes in ``MeterOutcome/all``.
        case .refused(let code): 4 + code.ordinal
        case .observed(let code): 4 + codeCount + code.ordinal
        case .failed(let failure): 4 + 2 * codeCount + failure.ordinal
        case .answered(let status): 4 + 2 * codeCount + failureCount + status.rawValue - 2
        case .repeated(let status): 4 + 2 * codeCount + failureCount + classCount + status.rawValue - 2
        }
    }

    private static let codeCount = Refusal.Code.allCases.count
    private static let failureCount = DeliveryFailure.allCases.count
    private static let classCount = StatusClass.allCases.count
}

/// The release or app that a request is counted for.
enum CountedParty {
    /// A refused request has claimed its release without proof.
    case release(AppRelease)
    /// The request names no release, and belongs to the app by its host.
    case app(String)
    case unknown
}

/// How many requests one loop serves at present. Only the loop writes.
private final class LoopLoad: Sendable {
    private let requests = Atomic<Int>(0)

    var current: Int { requests.load(ordering: .relaxed) }

    func add(_ change: Int) {
        requests.store(requests.load(ordering: .relaxed) &+ change, ordering: .relaxed)
    }
}

/// Counts the requests of one loop, and is confined to it. A request costs one look-up and no lock; the
/// counter allocates cells only for a release that is new to the loop. Only administrators add releases, so
/// callers cannot increase their number.
package final class LoopRequestCounter: @unchecked Sendable {
    private let meter: RequestMeter
    private let load: LoopLoad
    private var cells: [KeyID: ReleaseCounters] = [:]
    /// Counts of requests that name no release and came to an app's host; there are no more apps than hosts
    /// that name one.
    private var apps: [String: ReleaseCounters] = [:]
    private var durations: [LoopDurations.Owner: LoopDurations] = [:]
    private let unknown: ReleaseCounters
    /// The release that was counted last. A loop mostly meets the same few releases, and comparing references
    /// is cheaper than a look-up by key id.
    private var latest: (release: AppRelease, cells: ReleaseCounters)?

    package init(_ meter: RequestMeter) {
        self.meter = meter
        load = meter.makeLoad()
        let durations = LoopDurations(of: LoopDurations.Owner(app: "", scheme: ""), meter: meter)
        unknown = meter.makeCells(of: nil, durations: durations)
    }

    /// A request has begun.
    func begin() { load.add(1) }

    /// A request has ended.
    func end() { load.add(-1) }

    /// Counts how a request ended.
    @discardableResult
    func count(_ outcome: MeterOutcome, of party: CountedParty) -> CountedRequest {
        switch party {
        case .release(let release): cells(of: release).count(outcome)
        case .app(let name): cells(of: name).count(outcome)
        case .unknown: unknown.count(outcome)
        }
    }

    /// Counts an accepted request of `release`.
    @discardableResult
    package func countAccepted(_ release: AppRelease, under edition: AppRelease.Edition) -> CountedRequest {
        cells(of: release).count(edition == .next ? .acceptedUnderNextKey : .accepted)
    }

    /// Counts a response to any caller.
    func respond(with code: Refusal.Code) { if code == .unavailable { meter.countUnavailable() } }

    /// Counts a step of a login or a refresh.
    func count(_ operation: AuthorityOperation, refusal: Refusal.Code?, failure: DeliveryFailure?) {
        meter.operations.count(operation, refusal: refusal, failure: failure)
    }

    private func cells(of app: String) -> ReleaseCounters {
        if let cells = apps[app] { return cells }
        let made = meter.makeCells(of: nil, app: app, durations: durations(of: app, scheme: ""))
        apps[app] = made
        return made
    }

    private func cells(of release: AppRelease) -> ReleaseCounters {
        if let latest, latest.release === release { return latest.cells }
        let found = cells[release.id] ?? makeCells(of: release)
        cells[release.id] = found
        latest = (release, found)
        return found
    }

    private func makeCells(of release: AppRelease) -> ReleaseCounters {
        meter.makeCells(
            of: release, durations: durations(of: release.app, scheme: release.scheme.rawValue))
    }

    private func durations(of app: String, scheme: String) -> LoopDurations {
        let owner = LoopDurations.Owner(app: app, scheme: scheme)
        if let durations = durations[owner] { return durations }
        let made = LoopDurations(of: owner, meter: meter)
        durations[owner] = made
        return made
    }
}
