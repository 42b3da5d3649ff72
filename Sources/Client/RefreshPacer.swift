import CountersignVault
import CountersignWire

/// Paces the refreshes that refusals provoke while the token is live as far as the client knows: a party on
/// the path can provoke genuine refusals with requests that it changes, and each refresh gives it another
/// signed copy to hold. The first two begin at once, since one request may need both; then each waits for
/// twice as long as the one before, up to a minute. An hour without one starts anew.
///
/// Refreshes of tokens that have expired are never delayed.
final class RefreshPacer: Sendable {
    static let immediate = 2
    /// Milliseconds.
    static let firstDelay: Int64 = 1_000
    static let longestDelay: Int64 = 60_000
    static let quiet: Int64 = 3_600_000

    private struct Pace {
        var session: SessionID
        var count = 0
        var last: Int64 = 0
    }

    private let pace = Locked<Pace?>(nil)

    /// Whether a provoked refresh of the session may begin; `now` is in milliseconds of a clock that never
    /// goes back.
    func admit(_ session: SessionID, at now: Int64) -> Bool {
        pace.with { pace in
            var next = pace.flatMap { $0.session == session ? $0 : nil } ?? Pace(session: session)
            if next.count > 0, now - next.last >= RefreshPacer.quiet { next = Pace(session: session) }
            guard now - next.last >= RefreshPacer.delay(after: next.count) else { return false }
            next.count += 1
            next.last = now
            pace = next
            return true
        }
    }

    /// The token had expired: what came before does not count.
    func noteExpiry(of session: SessionID) {
        pace.with { if $0?.session == session { $0 = nil } }
    }

    /// Milliseconds between a refresh and the next one, after `count` of them.
    private static func delay(after count: Int) -> Int64 {
        guard count >= immediate else { return 0 }
        return min(firstDelay << min(Int64(count - immediate), 16), longestDelay)
    }
}
