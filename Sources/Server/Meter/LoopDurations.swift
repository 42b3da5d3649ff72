import CountersignAuthority
import CountersignMemory
import CountersignThreads
import CountersignWire

/// How long the requests of one app, scheme and outcome took on one loop.
struct DurationSeries: Sendable {
    enum Span: Sendable {
        /// From when the head has been read and judgement begins until the response has been handed to the
        /// socket, or cannot be.
        case request
        /// From the first byte that is sent to the backend until the head of its response.
        case upstream
    }

    struct Subject: Sendable, Hashable {
        /// Empty, as is `scheme`, for requests that name no release.
        var app: String
        var scheme: String
        /// As ``MeterOutcome/label`` has it.
        var outcome: String
        var span: Span
    }

    let subject: Subject
    let histogram: DurationHistogram
}

/// The histograms of one loop for one app and scheme, made when an outcome first occurs. There are no more of
/// them than apps and schemes and outcomes, whatever callers send. Confined to the loop; the meter reads the
/// histograms.
final class LoopDurations {
    /// The app and scheme, whose names only administrators choose.
    struct Owner: Hashable {
        var app: String
        var scheme: String
    }

    private let owner: Owner
    private let meter: RequestMeter
    /// By ``ReleaseCounters/place(of:)``, for requests and for the backend.
    /// Unmanaged, so that recording counts no references: the meter keeps its histograms.
    private var requests = [Unmanaged<DurationHistogram>?](repeating: nil, count: MeterOutcome.all.count)
    private var upstream = [Unmanaged<DurationHistogram>?](repeating: nil, count: MeterOutcome.all.count)

    init(of owner: Owner, meter: RequestMeter) {
        self.owner = owner
        self.meter = meter
    }

    /// `upstreamNanoseconds` is nil for a request that did not reach the backend.
    func record(_ outcome: MeterOutcome, nanoseconds: UInt64, upstreamNanoseconds: UInt64?) {
        let place = outcome.durationPlace
        if let histogram = requests[place] {
            histogram._withUnsafeGuaranteedRef { $0.record(nanoseconds: nanoseconds) }
        } else {
            requests[place] = begin(outcome, span: .request, with: nanoseconds)
        }
        guard let upstreamNanoseconds else { return }
        if let histogram = upstream[place] {
            histogram._withUnsafeGuaranteedRef { $0.record(nanoseconds: upstreamNanoseconds) }
        } else {
            upstream[place] = begin(outcome, span: .upstream, with: upstreamNanoseconds)
        }
    }

    private func begin(
        _ outcome: MeterOutcome, span: DurationSeries.Span, with nanoseconds: UInt64
    ) -> Unmanaged<DurationHistogram> {
        let histogram = meter.makeHistogram(
            of: DurationSeries.Subject(
                app: owner.app, scheme: owner.scheme, outcome: outcome.label, span: span))
        histogram.record(nanoseconds: nanoseconds)
        return .passUnretained(histogram)
    }
}

extension MeterOutcome {
    /// Requests that were accepted take equally long under each key.
    fileprivate var durationPlace: Int {
        switch self {
        case .accepted, .acceptedUnderNextKey, .acceptedByTicket: 0
        default: ReleaseCounters.place(of: self)
        }
    }
}

/// How a request was counted, so that its durations are counted beside it.
package struct CountedRequest {
    let counters: ReleaseCounters
    let outcome: MeterOutcome

    func record(nanoseconds: UInt64, upstreamNanoseconds: UInt64?) {
        counters.durations.record(outcome, nanoseconds: nanoseconds, upstreamNanoseconds: upstreamNanoseconds)
    }
}
