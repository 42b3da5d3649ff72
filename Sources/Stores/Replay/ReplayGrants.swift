import CountersignGate
import CountersignHTTP
import CountersignSchemes
import CountersignThreads
import CountersignWire
import Synchronization

/// What the loops of a node need to insert entries.
protocol ReplayGrant: Sendable {
    var epoch: ReplayEpoch { get }
}

/// The grant that a guard's controller has published for the loops, if any. Thread-safe.
final class ReplayGrants<Grant: ReplayGrant>: Sendable {
    private struct Content {
        var grant: Grant?
        /// Why there is no grant; empty if there is one.
        var reason: String
        /// Seconds of the monotonic clock up to which the grant holds.
        var expires = Int64.min
        /// Data that was read up to this second of the monotonic clock no longer counts.
        var suspended = Int64.min
        /// How the first attempt ended; nil before.
        var firstFailure: OperationalError??
    }

    let kind: SharedReplayKind
    /// Milliseconds for an insertion.
    let patience: Int
    private let content: Monitor<Content>
    /// Insertions that were refused because the server, or its epoch, was not there.
    let refusals = Atomic<UInt64>(0)

    init(of kind: SharedReplayKind, patience: Int) {
        (self.kind, self.patience) = (kind, patience)
        content = Monitor(Content(reason: "\(kind.title) has not been reached yet"))
    }

    /// Throws `unavailable` if there is no grant, or if the store has not confirmed it lately.
    func current() throws(Refusal) -> Grant {
        let (grant, reason) = state
        guard let grant else { throw refusal(reason) }
        return grant
    }

    private var state: (grant: Grant?, reason: String) {
        let now = EventLoop.monotonicSeconds()
        return content.with { content in
            guard content.grant == nil || content.expires > now else {
                return (nil, "the store has not confirmed the epoch for \(ReplayEpoch.lease) s")
            }
            return (content.grant, content.reason)
        }
    }

    /// The grant, even if the store has not confirmed it lately.
    var grant: Grant? { content.with { $0.grant } }

    /// What keeps this node from inserting; nil if nothing does.
    var failure: String? {
        let (grant, reason) = state
        return grant == nil ? "replay guard: \(reason)" : nil
    }

    /// `confirmed` is when the store was read: seconds of the monotonic clock.
    func publish(_ grant: Grant, confirmed: Int64) {
        content.with {
            guard confirmed > $0.suspended else { return }
            ($0.grant, $0.reason) = (grant, "")
            $0.expires = confirmed + ReplayEpoch.lease
            if $0.firstFailure == nil { $0.firstFailure = .some(nil) }
        }
        content.wakeAll()
    }

    /// Revokes the grant, and accepts no grant for data that was read before the call.
    func suspend() {
        content.with {
            ($0.grant, $0.reason) = (nil, "the epoch is read again")
            $0.suspended = EventLoop.monotonicSeconds()
        }
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

    /// The grant under which an entry may be inserted, as far as its creation time decides.
    /// `refused` are creation times that an operator's confirmation of the clock refuses.
    func current(for entry: ReplayEntry, now: Int64, refusing refused: TimeIntervals) throws(Refusal) -> Grant
    {
        guard UInt32(exactly: entry.created) != nil, entry.created > 0, UInt32(exactly: now) != nil else {
            throw Refusal(.stale, detail: "created \(entry.created) is out of the range of the replay guard")
        }
        let grant = try current()
        if let bound = grant.epoch.bound(for: entry.created, now: now) {
            let wait = Int(clamping: max(bound - now + 1, 1))
            throw Refusal(
                .unavailable, detail: "created \(entry.created), but replays up to \(bound) cannot be told",
                retryAfter: wait)
        }
        guard grant.epoch.periods.contain(now) else { throw refusal("the clock has jumped") }
        guard !refused.contains(entry.created), !grant.epoch.periods.refused.contains(entry.created) else {
            throw Refusal(
                .unavailable,
                detail: "created \(entry.created), which may have been admitted by a wrong clock")
        }
        return grant
    }

    /// Returns if the entry was inserted.
    func admit(_ entry: ReplayEntry, after outcome: InsertionOutcome) throws(Refusal) {
        switch outcome {
        case .inserted: return
        case .present:
            throw Refusal(.replayed, detail: "scheme \(entry.scheme.rawValue), key \(entry.keyID)")
        case .failed(let reason): throw refusal(reason)
        }
    }

    func refusal(_ detail: String) -> Refusal {
        refusals.add(1, ordering: .relaxed)
        return Refusal(.unavailable, detail: "replay guard: \(detail)", retryAfter: 1)
    }
}
