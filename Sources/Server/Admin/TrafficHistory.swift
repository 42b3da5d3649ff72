import CountersignAuthority
import CountersignGate
import CountersignThreads
import CountersignWire

/// What this process served in each of the last 25 hours' minutes, so that the console shows the traffic
/// beside that of a day ago. In memory: a restart forgets it.
package final class TrafficHistory: Sendable {
    /// The requests of one minute.
    package struct Minute: Sendable {
        /// Whole minutes since 1970-01-01, UTC.
        package var number: Int64
        /// Forwarded, or served by the authority, and answered.
        package var accepted: UInt64 = 0
        package var refused: UInt64 = 0
        /// Admitted requests that failed at the backend (also by its status) or at the client.
        package var failed: UInt64 = 0
        /// By code; only those that occurred.
        package var refusals: [Refusal.Code: UInt64] = [:]
        package var durations = DurationHistogram.Snapshot()

        package var requests: UInt64 { accepted &+ refused &+ failed }
    }

    static let mostMinutes = 25 * 60

    private struct State: Sendable {
        var base = Counts()
        /// The minute that is not over; nil before the first look.
        var current: Int64?
        /// By number, ascending.
        var minutes: [Minute] = []
    }

    private let meter: RequestMeter
    private let state = Locked(State())

    init(_ meter: RequestMeter) { self.meter = meter }

    /// Call every few seconds. `now` is in whole Unix seconds.
    func look(at now: Int64) {
        let minute = now / 60
        guard state.with({ $0.current }) != minute else { return }
        let counts = Counts(meter)
        state.with { state in
            if let current = state.current, current < minute {
                state.minutes.append(counts.minute(current, since: state.base))
                let surplus = state.minutes.count - TrafficHistory.mostMinutes
                if surplus > 0 { state.minutes.removeFirst(surplus) }
            } else if state.current != nil {
                // The clock went back: minutes of a later time would stand before earlier ones.
                state.minutes.removeAll { $0.number >= minute }
            }
            state.base = counts
            state.current = minute
        }
    }

    /// The last `count` minutes that are over and known, the oldest first.
    package func last(_ count: Int) -> [Minute] { state.with { Array($0.minutes.suffix(count)) } }

    /// The minute of that number; nil if it is not known.
    package func minute(_ number: Int64) -> Minute? {
        state.with { state in state.minutes.last { $0.number == number } }
    }

    /// The counters at one moment.
    private struct Counts: Sendable {
        var totals: [MeterOutcome: UInt64] = [:]
        var durations = DurationHistogram.Snapshot()

        init() {}

        init(_ meter: RequestMeter) {
            for (subject, count) in meter.totals() { totals[subject.outcome, default: 0] &+= count }
            for (subject, snapshot) in meter.durations() where subject.span == .request {
                durations.add(snapshot)
            }
        }

        func minute(_ number: Int64, since base: Counts) -> Minute {
            var minute = Minute(number: number)
            for (outcome, total) in totals {
                let count = total &- base.totals[outcome, default: 0]
                guard count > 0 else { continue }
                switch outcome {
                case .accepted, .acceptedUnderNextKey, .acceptedByTicket, .open, .observed:
                    minute.accepted &+= count
                case .refused(let code):
                    minute.refused &+= count
                    minute.refusals[code, default: 0] &+= count
                case .failed: minute.failed &+= count
                case .answered, .repeated: break
                }
            }
            minute.durations = durations.subtracting(base.durations)
            return minute
        }
    }
}
