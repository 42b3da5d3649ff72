import CountersignSeal
import CountersignWire

/// The time at the authority.
///
/// The client takes it only from the authority's signed response, and only from one that cannot be old: a
/// party that delays a response shifts the clock by the delay. From then on the clock follows the monotonic
/// clock, so that a change of the device's clock causes no refusals. Source: docs/protocol.md, "Time".
final class ServerClock: Sendable {
    /// The longest delay of a response from which the time is taken, milliseconds.
    static let maximumDelay: Int64 = 5_000

    private struct Anchor {
        /// Whole Unix seconds, from the authority.
        let told: Int64
        /// The monotonic clock's time at that moment.
        let milliseconds: Int64
    }

    private let anchor = Locked<Anchor?>(nil)

    /// Whole Unix seconds; nil before the authority's time is known.
    func now(_ time: any ClientTime) -> Int64? {
        guard let anchor = anchor.with({ $0 }) else { return nil }
        return anchor.told + (time.milliseconds - anchor.milliseconds) / 1_000
    }

    /// Sets the clock to the authority's time `told`.
    func set(to told: Int64, clock time: any ClientTime) {
        let milliseconds = time.milliseconds
        anchor.with { $0 = Anchor(told: told, milliseconds: milliseconds) }
    }

    /// The authority accepted a request dated `sent`, `took` milliseconds ago: the estimate is good enough to
    /// keep.
    func confirm(sent: Int64, took: Int64, clock time: any ClientTime) {
        guard took < ServerClock.maximumDelay else { return }
        let milliseconds = time.milliseconds - took
        anchor.with { if $0 == nil { $0 = Anchor(told: sent, milliseconds: milliseconds) } }
    }
}

extension RefusalNotice {
    /// The authority's time from a genuine `stale`; nil if the response came too late or has no time.
    func timeTold(took: Int64) -> Int64? {
        code == Refusal.Code.stale.rawValue && took < ServerClock.maximumDelay ? time : nil
    }
}

extension ClientEnvironment {
    /// The time at the authority, whole Unix seconds. Before it is known, the device's clock plus the stored
    /// offset.
    package func now() throws(ClientOperationError) -> Int64 {
        if let now = keeper.clock.now(time) { return now }
        return time.now + (try keeper.clockOffset())
    }

    /// The authority accepted a request dated `sent`: its response proves it.
    func confirm(_ sent: Int64, by verified: VerifiedResponse) {
        guard verified.signer != nil, verified.notice == nil else { return }
        keeper.clock.confirm(sent: sent, took: verified.took, clock: time)
    }

    /// Sets the clock to the authority's time from a signed response that just came. Stores the offset as the
    /// first estimate of later processes; if the vault fails, only that estimate is lost.
    func correctClock(to told: Int64) {
        keeper.clock.set(to: told, clock: time)
        let offset = told - time.now
        try? keeper.change { state in
            guard state.clockOffset != offset else { return .keep(()) }
            state.clockOffset = offset
            return .write(())
        }
    }
}

/// Asks the authority for the time and stores the difference from the device's clock.
package struct TimeRequest: Sendable {
    private let installation: Installation
    private let environment: ClientEnvironment

    package init(_ installation: Installation, environment: ClientEnvironment) {
        self.installation = installation
        self.environment = environment
    }

    /// Seconds by which the device's clock is behind. The response must be signed with the authority's key
    /// for this nonce, and must have come in time.
    package func callAsFunction() async throws(ClientOperationError) -> Int64 {
        guard installation.authorityKey != nil else {
            throw .incomplete("the authority's key is not known; without it no time can be verified")
        }
        let nonce = Base64.encode(environment.random.bytes(16).span, as: .url)
        let draft = installation.draft("GET", path: "/time?nonce=\(nonce)")
        let verified = try await SignedRequestSender(environment: environment).send(
            draft, as: installation.release, at: environment.time.now,
            authority: installation.authorityKeys)
        switch verified.proof {
        case .signature: break
        case .headSignature: throw .notUnderstood("time: the answer is too long")
        case .unsigned(let reason): throw .notGenuine("time: \(reason.detail)")
        }
        if let notice = verified.notice { throw .refused(notice) }
        let body = try ResponseFields(verified.response, of: "time")
        guard try body.text("nonce") == nonce else {
            throw .notGenuine("time: an answer to another question")
        }
        guard verified.took < ServerClock.maximumDelay else {
            throw .notGenuine("time: the answer took \(verified.took / 1000) s, and may be as old")
        }
        let told = try body.number("time")
        environment.correctClock(to: told)
        return told - environment.time.now
    }
}
