import CountersignMemory
import CountersignWire

/// Bounds the rows that the refreshes of one session write, with a token bucket for each session that has
/// refreshed recently.
///
/// An honest client stays far below the limit: it sends a few copies of one refresh, and it paces the
/// refreshes that refusals cause. Only verified transcripts that were not accepted before count, so another
/// party cannot exhaust a session's bucket with copies.
final class RefreshLimiter: Sendable {
    /// The number of refreshes that a full bucket admits at once.
    static let capacity: Int64 = 64
    static let perSecond: Int64 = 4

    private struct Bucket {
        var used: Int64
        /// Whole Unix seconds.
        var at: Int64
    }

    private struct State {
        var buckets: [SessionID: Bucket] = [:]
        /// When there are that many, those that are full again are removed.
        var pruneAt = RefreshLimiter.leastCount
    }

    private static let leastCount = 4_096
    private let state = Locked(State())

    /// Whether one more may be written. `now` is in whole Unix seconds.
    func admit(_ session: SessionID, at now: Int64) -> Bool {
        state.with { state in
            if state.buckets.count >= state.pruneAt {
                state.buckets = state.buckets.filter { RefreshLimiter.used(of: $0.value, at: now) > 0 }
                state.pruneAt = max(RefreshLimiter.leastCount, state.buckets.count * 2)
            }
            let used = state.buckets[session].map { RefreshLimiter.used(of: $0, at: now) } ?? 0
            guard used < RefreshLimiter.capacity else { return false }
            state.buckets[session] = Bucket(used: used + 1, at: now)
            return true
        }
    }

    /// A clock that was set back neither fills nor empties a bucket.
    private static func used(of bucket: Bucket, at now: Int64) -> Int64 {
        let passed = min(max(now.earlier(by: bucket.at), 0), capacity)
        return max(bucket.used - passed * perSecond, 0)
    }

    /// Sessions that have a bucket.
    var count: Int { state.with { $0.buckets.count } }
}
