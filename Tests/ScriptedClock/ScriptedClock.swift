import CountersignGate
import CountersignMemory

/// The clocks of a machine, which a test sets, in milliseconds.
package final class ScriptedClock: Sendable {
    private let times: Locked<(wall: Int64, uptime: Int64)>

    /// `wall` in whole Unix seconds.
    package init(wall: Int64) { times = Locked((wall * 1_000, 1_000_000)) }

    /// Reads both.
    package var clocks: TrustedClock.Clocks {
        { [times] in times.with { $0 } }
    }

    /// Time passes.
    package func advance(_ seconds: Int64) {
        times.with { $0 = ($0.wall + seconds * 1_000, $0.uptime + seconds * 1_000) }
    }

    /// Somebody sets the wall clock.
    package func jump(_ seconds: Int64) { times.with { $0.wall += seconds * 1_000 } }
}

extension TrustedTime {
    /// That time in whole Unix seconds, by a clock that was right for ten minutes.
    package static func at(_ seconds: Int64) -> TrustedTime {
        let patience = ClockTrust.patience / 1_000
        // A clock cannot begin before 1970.
        let start = max(seconds - patience, 0)
        let script = ScriptedClock(wall: start)
        let clock = TrustedClock(reading: script.clocks)
        clock.begin(ClockTrust.Beginning())
        script.advance(patience)
        guard let time = clock.sweepTime else { fatalError("a clock that was right is trusted") }
        return time.earlier(by: start + patience - seconds)
    }

    /// Later than all times of the tests.
    package static var late: TrustedTime { at(1 << 40) }
}

extension TrustedTime: ExpressibleByIntegerLiteral {
    package init(integerLiteral seconds: Int64) { self = .at(seconds) }
}
