import CountersignSchemes
import CountersignSeal
import CountersignWire

/// The lookups of a source of sessions that must not wait for a store on its caller's thread: a lookup that
/// would have to fails, and is noted here. The caller has it finished elsewhere, and begins
/// the judgement again, which then finds the result.
///
/// One for each loop, and confined to it.
package protocol DeferredLookups: AnyObject, Sendable {
    /// Forgets what an earlier judgement has noted. `finding` is what a lookup for this one has returned.
    func begin(with finding: (any Sendable)?)

    /// Whether a lookup was noted.
    var isNoted: Bool { get }

    /// The noted lookup; nil for none. Take it before the loop judges another request.
    func take() -> DeferredLookup?
}

/// Reads the store on another thread. Refuses with `unavailable` if the store cannot be read, or too many
/// lookups wait.
package typealias DeferredLookup = @Sendable () async throws(Refusal) -> any Sendable

/// What the last stage of a judgement needs from the store, looked up before the replay guard admits the
/// request: after that, a judgement cannot begin again.
struct EarlyLookup {
    /// The session of the bearer token, or the proven one.
    var session: Result<Session?, Refusal>
    /// The key of the session's device; nil unless the route needs its signature.
    var deviceKey: P256Point?
}
