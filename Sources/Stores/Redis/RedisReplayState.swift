import CountersignHTTP
import CountersignThreads
import CountersignWire
import Synchronization

/// What a node's loops need to insert entries: the master, and the epoch that it holds.
struct RedisReplayGrant: Sendable {
    let epoch: ReplayEpoch
    let target: UpstreamTarget
    /// The server's name for messages.
    let server: String
    /// The name of the script in the server.
    let script: String
}

/// The grant that the controller has published for the loops, if any. Thread-safe.
final class RedisReplayState: Sendable {
    private struct Content {
        var grant: RedisReplayGrant?
        /// Why there is no grant.
        var reason = "Redis has not been reached yet"
        /// Seconds of the monotonic clock up to which the grant holds.
        var expires = Int64.min
        /// How the first attempt ended; nil before.
        var firstFailure: OperationalError??
    }

    private let content = Monitor(Content())
    /// Insertions that were refused because Redis, or its epoch, was not there.
    let refusals = Atomic<UInt64>(0)

    /// Throws `unavailable` if there is no grant, or if the store has not confirmed it lately.
    func current() throws(Refusal) -> RedisReplayGrant {
        let now = EventLoop.monotonicSeconds()
        let (grant, reason) = content.with { content in
            (content.expires > now ? content.grant : nil, content.grant == nil ? content.reason : nil)
        }
        if let grant { return grant }
        throw refusal(reason ?? "the store has not confirmed the epoch for \(ReplayEpoch.lease) s")
    }

    /// The grant, even if the store has not confirmed it lately.
    var grant: RedisReplayGrant? { content.with { $0.grant } }

    /// What keeps this node from inserting; nil if nothing does.
    var failure: String? {
        do throws(Refusal) {
            _ = try current()
            return nil
        } catch {
            return error.detail
        }
    }

    /// `confirmed` is when the store was read: seconds of the monotonic clock.
    func publish(_ grant: RedisReplayGrant, confirmed: Int64) {
        content.with {
            $0.grant = grant
            $0.expires = confirmed + ReplayEpoch.lease
            if $0.firstFailure == nil { $0.firstFailure = .some(nil) }
        }
        content.wakeAll()
    }

    func revoke(because error: OperationalError) {
        content.with {
            $0.grant = nil
            $0.reason = error.message
            if $0.firstFailure == nil { $0.firstFailure = error }
        }
        content.wakeAll()
    }

    /// Blocks until the controller's first attempt has ended; throws its failure.
    func waitForFirstGrant() throws(OperationalError) {
        if let failure = content.wait(until: { $0.firstFailure }) { throw failure }
    }

    func refusal(_ detail: String) -> Refusal {
        refusals.add(1, ordering: .relaxed)
        return Refusal(.unavailable, detail: "replay guard: \(detail)", retryAfter: 1)
    }
}
