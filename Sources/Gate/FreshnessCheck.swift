import CountersignSchemes
import CountersignWire
import Glibc

/// A signature proof whose signed time lies within the policy's window. Only ``FreshnessCheck`` can make one.
package struct FreshProof: ~Copyable, Sendable {
    private let signature: SignatureProof
    /// Whole Unix seconds; nil where the scheme does not sign a time.
    let created: Int64?
    /// When freshness was checked; after the body check, when the body was checked.
    var now: Int64

    /// The claim whose signature was verified; it does not change any more.
    var claim: Claim { signature.claim }
    var release: AppRelease { signature.release }
    var session: Session? { signature.session }
    var edition: AppRelease.Edition { signature.edition }
    /// Whether the request's method is safe.
    var isSafe: Bool { signature.isSafe }
    /// What the replay guard has computed for the entry of this claim.
    var fingerprint: ReplayFingerprint? { signature.fingerprint }
    /// Nil if the proof has no replay key.
    var replayEntry: ReplayEntry? { ReplayEntry(self) }

    fileprivate init(_ proof: consuming SignatureProof, created: Int64?, now: Int64) {
        signature = proof
        self.created = created
        self.now = now
    }
}

/// Checks that the signed time lies within the policy's window around now.
package struct FreshnessCheck: Sendable {
    package init() {}

    /// `now` in whole Unix seconds.
    package func check(_ proof: consuming SignatureProof, at now: Int64) throws(Refusal) -> FreshProof {
        let claim = proof.claim
        let created = try check(
            created: claim.created, expires: claim.expires, lifetime: claim.lifetime,
            policy: proof.release.schemePolicy, at: now)
        return FreshProof(proof, created: created, now: now)
    }

    /// The signature's creation time, if it lies within the policy's window; nil if the scheme does not sign
    /// a time.
    func check(
        created: Claim.CreationTime, expires: Int64?, lifetime: Int64?, policy allowance: SchemePolicy,
        at now: Int64
    ) throws(Refusal) -> Int64? {
        let created = created.instant(allowance)
        if let created {
            let (age, overflow) = now.subtractingReportingOverflow(created)
            if let lifetime {
                try FreshnessCheck.check(
                    age: overflow ? Int64.max : age, lifetime: lifetime, policy: allowance, at: now)
            } else if overflow || age.magnitude > allowance.window.magnitude {
                throw Refusal(
                    .stale,
                    detail: FreshnessCheck.describe(created: created, now: now, window: allowance.window),
                    decidedAt: now)
            }
        }
        if let expires, expires <= now {
            let (end, here) = (CivilTime.rfc3339Text(expires), CivilTime.rfc3339Text(now))
            throw Refusal(.stale, detail: "expired at \(end); the time here is \(here)", decidedAt: now)
        }
        return created
    }

    /// A presigned URL may be as far ahead of the clock as any signature. Its age may reach the lifetime that
    /// it states, or the policy's limit if that is shorter.
    private static func check(
        age: Int64, lifetime: Int64, policy allowance: SchemePolicy, at now: Int64
    ) throws(Refusal) {
        guard age >= -allowance.window else {
            throw Refusal(.stale, detail: "created \(age.magnitude) s ahead", decidedAt: now)
        }
        let most = min(lifetime, allowance.presignedLifetime)
        guard age <= most else {
            let source = most == lifetime ? "the URL allows" : "the app's policy allows"
            throw Refusal(
                .stale, detail: "created \(age) s ago; \(source) \(most) s", decidedAt: now)
        }
    }

    private static func describe(created: Int64, now: Int64, window: Int64) -> String {
        let (distance, overflow) = now.subtractingReportingOverflow(created)
        if overflow { return "created \(created) is out of all bounds" }
        let side = distance > 0 ? "ago" : "ahead"
        return "created \(CivilTime.rfc3339Text(created)) is \(distance.magnitude) s \(side); "
            + "the window is \(window) s either side of \(CivilTime.rfc3339Text(now))"
    }
}

extension Claim.CreationTime {
    /// Whole Unix seconds; nil where the scheme does not sign a time.
    func instant(_ allowance: SchemePolicy) -> Int64? {
        switch self {
        case .unix(let seconds): return seconds
        case .wallClock(let seconds):
            let (instant, overflow) = seconds.subtractingReportingOverflow(allowance.timezoneOffset)
            return overflow ? seconds : instant
        case .unsigned: return nil
        }
    }
}

/// A fresh proof of the whole request: the body matches the signature, or its digest is checked while it
/// streams. Only ``BodyCheck`` can make one.
package struct CompleteProof: ~Copyable, Sendable {
    let fresh: FreshProof

    fileprivate init(_ fresh: consuming FreshProof) { self.fresh = fresh }
}

extension Claim {
    /// Compares a body that is held with the expectation, which is not copied for that.
    fileprivate func checkBody(of request: Request) throws(Refusal) {
        switch body {
        case .inSignature, .anything, .leftOpen: return
        case .unsigned where request.body.isEmpty: return
        case .unsigned, .digests, .md5: try body.check(request.body.span)
        }
    }
}

/// Checks that the received body is the signed one.
package struct BodyCheck: Sendable {
    package init() {}

    /// For a streamed body, the caller carries the expectation.
    package func check(
        _ request: Request, fresh: consuming FreshProof, at now: Int64
    ) throws(Refusal) -> CompleteProof {
        if request.isBodyWhole { try fresh.claim.checkBody(of: request) }
        fresh.now = now
        return CompleteProof(fresh)
    }
}

/// The source of the current time: an argument, so that tests can set it.
package protocol TimeSource: Sendable {
    /// Whole Unix seconds.
    var now: Int64 { get }
    /// Whether that time, in whole Unix seconds, has certainly come.
    func hasCome(_ time: Int64) -> Bool
    /// Whether `time` is certainly the present time.
    func isPresent(_ time: Int64) -> Bool
    /// The best estimate of the time, in whole Unix seconds, for records that contain their time.
    var estimate: Int64 { get }
    /// Why the clock is not right, as one sentence without its full stop, for an operator: the clock that
    /// contradicts it, and the difference. Nil while none does.
    var contradiction: String? { get }
    /// The time for deletions; nil if this clock may cause none.
    var sweepTime: TrustedTime? { get }
}

extension TimeSource {
    package func hasCome(_ time: Int64) -> Bool { true }
    package func isPresent(_ time: Int64) -> Bool { true }
    package var estimate: Int64 { now }
    package var contradiction: String? { nil }
    /// Whether another clock contradicts this one now.
    package var isInDoubt: Bool { contradiction != nil }
    package var sweepTime: TrustedTime? { nil }
}

/// The machine's wall clock, unjudged: for what opens no deployment, and for tests. Servers and commands have
/// a ``TrustedClock``.
package struct SystemTime: TimeSource {
    package init() {}

    package var now: Int64 { Int64(time(nil)) }
}
