import CountersignWire
import Glibc
import Synchronization

/// A time in whole Unix seconds that certainly has come. Whatever cannot be undone and happens because a time
/// has come requires one, and only a ``TrustedClock`` makes one: what one process's wall clock says is not
/// enough.
package struct TrustedTime: Sendable, Comparable {
    package let seconds: Int64

    fileprivate init(seconds: Int64) { self.seconds = seconds }

    /// The time that many seconds before this one, which has come as well.
    package func earlier(by seconds: Int64) -> TrustedTime {
        let (time, overflow) = self.seconds.subtractingReportingOverflow(max(seconds, 0))
        return TrustedTime(seconds: overflow ? .min : time)
    }

    package static func < (left: TrustedTime, right: TrustedTime) -> Bool { left.seconds < right.seconds }
}

/// The clock of a server: the machine's wall clock, and whether it can be trusted.
///
/// Requests are judged by the wall clock, as their clients' signatures are. What would end a session, a
/// version of an app or a record by a clock that is not trusted is refused as `unavailable` instead
/// (``confirmed(_:)``), and is not deleted (``sweepTime``).
package final class TrustedClock: TimeSource {
    /// Reads the wall clock and the clock since the machine's start, in milliseconds. An argument, so that
    /// tests can set it.
    package typealias Clocks = @Sendable () -> (wall: Int64, uptime: Int64)

    private struct State {
        /// Nil until ``begin(_:)``.
        var trust: ClockTrust?
        /// The database's clock, as a mark.
        var store: ClockTrust.Mark?
    }

    private let state = Locked(State())
    private let clocks: Clocks
    /// How far the wall clock should be ahead of the one since the machine's start; `.min` if that is not
    /// known. Read without the lock, for every forwarded request.
    private let offset = Atomic<Int64>(.min)

    package init(reading clocks: @escaping Clocks = TrustedClock.machine) { self.clocks = clocks }

    /// The clocks of this machine.
    package static let machine: Clocks = {
        (milliseconds(of: CLOCK_REALTIME), milliseconds(of: CLOCK_BOOTTIME))
    }

    private static func milliseconds(of clock: clockid_t) -> Int64 {
        var time = timespec()
        clock_gettime(clock, &time)
        return Int64(time.tv_sec) * 1_000 + Int64(time.tv_nsec) / 1_000_000
    }

    /// The wall clock.
    package var now: Int64 { Int64(time(nil)) }

    /// By the wall clock while it is trusted, and else by the time at which it was trusted last.
    package func hasCome(_ time: Int64) -> Bool {
        time <= observing { (trust, reading) in trust.isTrusted ? reading.wall : trust.lastTrusted } / 1_000
    }

    /// The wall clock is read again: it may have been wrong for a moment only, when `time` was read.
    package func isPresent(_ time: Int64) -> Bool {
        observing { (trust, reading) in
            trust.isTrusted && abs(reading.wall / 1_000 - time) <= ClockTrust.tolerance / 1_000
        }
    }

    /// The best estimate of the time, in whole Unix seconds, for what is recorded with its time: the wall
    /// clock, unless it was set, and else the time that has come by the clock since the machine's start.
    package var estimate: Int64 {
        let (wall, uptime) = clocks()
        let offset = offset.load(ordering: .relaxed)
        guard offset != .min, abs(wall - uptime - offset) > ClockTrust.tolerance else { return wall / 1_000 }
        return (uptime + offset) / 1_000
    }

    package var isInDoubt: Bool { trust.doubt != nil }

    /// The time for what only tells that a time has come; nil while the clock is not trusted.
    package var trustedTime: TrustedTime? {
        observing { (trust, _) in
            trust.isTrusted ? TrustedTime(seconds: trust.lastTrusted / 1_000) : nil
        }
    }

    /// The time for what deletes; nil while the clock is not trusted, and for ten minutes after a start.
    package var sweepTime: TrustedTime? {
        observing { (trust, reading) in
            trust.maySweep(at: reading.uptime) ? TrustedTime(seconds: trust.lastTrusted / 1_000) : nil
        }
    }

    /// The judgement as of now.
    package var trust: ClockTrust { observing { (trust, _) in trust } }

    /// Judges the clock from here on.
    package func begin(_ beginning: ClockTrust.Beginning) {
        state.with { state in
            let reading = reading(beside: state.store)
            let trust = ClockTrust(beginning, reading: reading)
            state.trust = trust
            note(trust, at: reading.uptime)
        }
    }

    /// The database's clock stood at `time` when this machine's clock since its start stood at `uptime`.
    package func hear(storeTime time: Int64, at uptime: Int64) {
        state.with { $0.store = ClockTrust.Mark(wall: time, uptime: uptime) }
    }

    /// A person says that the wall clock is right. False if the database's clock says that it is not.
    @discardableResult
    package func confirm() -> Bool {
        state.with { state in
            let reading = reading(beside: state.store)
            guard var trust = state.trust, trust.confirm(reading) else { return false }
            state.trust = trust
            note(trust, at: reading.uptime)
            return true
        }
    }

    private func note(_ trust: ClockTrust, at uptime: Int64) {
        let expected = trust.expected(at: uptime) ?? (trust.doubt == nil ? nil : trust.lastTrusted)
        offset.store(expected.map { $0 - uptime } ?? .min, ordering: .relaxed)
    }

    private func reading(beside store: ClockTrust.Mark?) -> ClockTrust.Reading {
        let (wall, uptime) = clocks()
        return ClockTrust.Reading(wall: wall, uptime: uptime, store: store?.time(at: uptime))
    }

    /// Before the clock has begun to be judged, nothing speaks against it, and nothing is deleted by it.
    private func observing<Result>(_ body: (ClockTrust, ClockTrust.Reading) -> Result) -> Result {
        state.with { state in
            let reading = reading(beside: state.store)
            guard var trust = state.trust else {
                let none = ClockTrust(
                    mark: nil, agreesSince: nil, isTrusted: true, lastTrusted: reading.wall)
                return body(none, reading)
            }
            trust.observe(reading)
            state.trust = trust
            // What the clock showed for the first time may be unlike what it should show by now.
            if trust.mark != nil { note(trust, at: reading.uptime) }
            return body(trust, reading)
        }
    }
}

extension TimeSource {
    /// The refusal to send instead of `refusal`. A verdict that would hold only by a clock that is not
    /// trusted is `unavailable`: that a session is over, that a version is retired, that a signature is too
    /// old (its signed response would teach the client a wrong time).
    package func confirmed(_ refusal: Refusal) -> Refusal {
        guard let moment = refusal.decidingTime else { return refusal }
        if refusal.code == .stale {
            // The response tells this time.
            if isPresent(moment) { return refusal }
        } else if hasCome(moment) {
            var certain = refusal
            certain.decidingTime = nil
            return certain
        }
        return Refusal(
            .unavailable,
            detail: "the clock is not trusted, and by it the refusal would be \(refusal.code.rawValue): "
                + refusal.detail, retryAfter: 60)
    }
}
