import CountersignWire
import Glibc
import Synchronization

/// A time in whole Unix seconds that has certainly come. Every irreversible change that happens because a
/// time has come requires one. Only a ``TrustedClock`` makes one, because the wall clock of one process is
/// not reliable enough.
package struct TrustedTime: Sendable, Comparable {
    package let seconds: Int64

    fileprivate init(seconds: Int64) { self.seconds = seconds }

    /// The time `seconds` before this one, which has certainly come, too.
    package func earlier(by seconds: Int64) -> TrustedTime {
        let (time, overflow) = self.seconds.subtractingReportingOverflow(max(seconds, 0))
        return TrustedTime(seconds: overflow ? .min : time)
    }

    package static func < (left: TrustedTime, right: TrustedTime) -> Bool { left.seconds < right.seconds }
}

/// The clock of a server or a command: the machine's wall clock, and whether it can be trusted.
///
/// Requests are judged by the wall clock, because clients sign by theirs. While the clock is not trusted, a
/// request whose session, app version or record would be over by it is refused as `unavailable`
/// (``confirmed(_:)``), and nothing is deleted (``sweepTime``).
package final class TrustedClock: TimeSource {
    /// Reads the wall clock and the uptime clock, in milliseconds. An argument, so that tests can set the
    /// clocks.
    package typealias Clocks = @Sendable () -> (wall: Int64, uptime: Int64)

    private struct State {
        /// Nil until ``begin(_:)``.
        var trust: ClockTrust?
        /// The database's clock, as a mark.
        var store: ClockTrust.Mark?
    }

    private let state = Locked(State())
    private let clocks: Clocks
    /// The expected difference between the wall clock and the uptime clock; `.min` if it is not known. Read
    /// without the lock, for every forwarded request.
    private let offset = Atomic<Int64>(.min)
    /// The same for the latest time that the database's clock allows; `.max` without a database.
    private let latestOffset = Atomic<Int64>(.max)

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

    /// Judges by the wall clock while it is trusted, otherwise by the time at which it was last trusted.
    package func hasCome(_ time: Int64) -> Bool {
        time <= observing { (trust, reading) in trust.isTrusted ? reading.wall : trust.lastTrusted } / 1_000
    }

    /// Reads the wall clock again, because it may have been wrong only at the moment when `time` was read.
    package func isPresent(_ time: Int64) -> Bool {
        observing { (trust, reading) in
            trust.isTrusted && abs(reading.wall / 1_000 - time) <= ClockTrust.tolerance / 1_000
        }
    }

    /// The best estimate of the time, in whole Unix seconds, for records that contain their time: the wall
    /// clock, or the expected time if the wall clock was set. Never later than the database's clock and the
    /// tolerance.
    package var estimate: Int64 {
        let (wall, uptime) = clocks()
        let latest = latestOffset.load(ordering: .relaxed)
        let offset = offset.load(ordering: .relaxed)
        let isRight = offset == .min || abs(wall - uptime - offset) <= ClockTrust.tolerance
        let ahead = min(isRight ? wall - uptime : offset, latest)
        return (uptime + ahead) / 1_000
    }

    package var isInDoubt: Bool { trust.doubt != nil }

    package var contradiction: String? { trust.doubt?.text }

    /// The time for reports that a time has come; nil while the clock is not trusted.
    package var trustedTime: TrustedTime? {
        observing { (trust, _) in
            trust.isTrusted ? TrustedTime(seconds: trust.lastTrusted / 1_000) : nil
        }
    }

    /// The time for deletions; nil while the clock is not trusted, and for ten minutes after a start.
    package var sweepTime: TrustedTime? {
        observing { (trust, reading) in
            trust.maySweep(at: reading.uptime) ? TrustedTime(seconds: trust.lastTrusted / 1_000) : nil
        }
    }

    /// The current judgement.
    package var trust: ClockTrust { observing { (trust, _) in trust } }

    /// Starts to judge the clock.
    package func begin(_ beginning: ClockTrust.Beginning) {
        state.with { state in
            let reading = reading(beside: state.store)
            let trust = ClockTrust(beginning, reading: reading)
            state.trust = trust
            note(trust, at: reading)
        }
    }

    /// Records that the database's clock was at `time` when this machine's uptime was `uptime`.
    package func hear(storeTime time: Int64, at uptime: Int64) {
        state.with { $0.store = ClockTrust.Mark(wall: time, uptime: uptime) }
        latestOffset.store(time - uptime + ClockTrust.tolerance, ordering: .relaxed)
    }

    /// Records that a person has confirmed the wall clock. Returns false if the database's clock contradicts
    /// it.
    @discardableResult
    package func confirm() -> Bool {
        state.with { state in
            let reading = reading(beside: state.store)
            guard var trust = state.trust, trust.confirm(reading) else { return false }
            state.trust = trust
            note(trust, at: reading)
            return true
        }
    }

    private func note(_ trust: ClockTrust, at reading: ClockTrust.Reading) {
        offset.store(
            trust.estimate(at: reading).map { $0 - reading.uptime } ?? .min, ordering: .relaxed)
    }

    private func reading(beside store: ClockTrust.Mark?) -> ClockTrust.Reading {
        let (wall, uptime) = clocks()
        return ClockTrust.Reading(wall: wall, uptime: uptime, store: store?.time(at: uptime))
    }

    /// Before ``begin(_:)``, no clock contradicts this one, and it causes no deletions.
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
            // The first reading of the clock may differ from the expected time.
            if trust.mark != nil { note(trust, at: reading) }
            return body(trust, reading)
        }
    }
}

extension TimeSource {
    /// The refusal to send in place of `refusal`. A verdict that depends on an untrusted clock becomes
    /// `unavailable`: that a session is over, that a version is retired, or that a signature is too old. (The
    /// signed response to an old signature would teach the client a wrong time.)
    package func confirmed(_ refusal: Refusal) -> Refusal {
        guard let moment = refusal.decidingTime else { return refusal }
        if refusal.code == .stale {
            // The response states this time.
            if isPresent(moment) { return refusal }
        } else if hasCome(moment) {
            var certain = refusal
            certain.decidingTime = nil
            return certain
        }
        return Refusal(
            .unavailable,
            detail: "the clock is not trusted; by this clock, the refusal would be \(refusal.code.rawValue): "
                + refusal.detail, retryAfter: 60)
    }
}
