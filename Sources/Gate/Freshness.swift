import CountersignSchemes
import CountersignWire

/// A proof that is neither old nor from the future. Only ``Freshness`` can make one.
package struct Fresh: ~Copyable, Sendable {
    let release: ReleaseKey
    let session: Session?
    let scope: KeyID
    let edition: ReleaseKey.Edition
    /// Whole Unix seconds; nil where the scheme does not sign a time.
    let created: Int64?
    /// When it was checked; once the body is there, when that was.
    var now: Int64
    let replayKey: Claim.ReplayKey?
    let coveredFields: FieldSet
    let body: BodyExpectation

    fileprivate init(_ proof: consuming Proof, created: Int64?, now: Int64) {
        release = proof.release
        session = proof.session
        scope = proof.scope
        edition = proof.edition
        replayKey = proof.replayKey
        coveredFields = proof.coveredFields
        body = proof.body
        self.created = created
        self.now = now
    }
}

/// Was it signed just now?
package struct Freshness: Sendable {
    package init() {}

    /// `now` in whole Unix seconds.
    package func check(_ proof: consuming Proof, at now: Int64) throws(Refusal) -> Fresh {
        let created = try judge(proof.created, proof.expires, proof.lifetime, proof.release.allowance, at: now)
        return Fresh(proof, created: created, now: now)
    }

    /// When the signature says it was made, if that is within the policy's window; nil where the scheme does not say.
    func judge(
        _ created: Claim.Created, _ expires: Int64?, _ lifetime: Int64?, _ allowance: Allowance, at now: Int64
    ) throws(Refusal) -> Int64? {
        let created = created.instant(allowance)
        if let created {
            let (age, overflow) = now.subtractingReportingOverflow(created)
            if let lifetime {
                try Freshness.judge(age: overflow ? Int64.max : age, lifetime, allowance)
            } else if overflow || age.magnitude > allowance.window.magnitude {
                throw Refusal(.stale, Freshness.describe(created: created, now: now, window: allowance.window))
            }
        }
        if let expires, expires <= now {
            let (end, here) = (CivilTime.internetText(expires), CivilTime.internetText(now))
            throw Refusal(.stale, "expired at \(end), it is \(here)")
        }
        return created
    }

    /// A presigned URL may be as far ahead as any signature, and as old as it says and the policy lets it be.
    private static func judge(age: Int64, _ lifetime: Int64, _ allowance: Allowance) throws(Refusal) {
        guard age >= -allowance.window else { throw Refusal(.stale, "created \(age.magnitude) s ahead") }
        let most = min(lifetime, allowance.presignedLifetime)
        guard age <= most else {
            let source = most == lifetime ? "it asks for itself" : "the app's policy allows"
            throw Refusal(.stale, "created \(age) s ago; \(most) s is what \(source)")
        }
    }

    private static func describe(created: Int64, now: Int64, window: Int64) -> String {
        let (distance, overflow) = now.subtractingReportingOverflow(created)
        if overflow { return "created \(created) is out of all bounds" }
        let side = distance > 0 ? "ago" : "ahead"
        return "created \(CivilTime.internetText(created)) is \(distance.magnitude) s \(side); "
            + "the window is \(window) s either side of \(CivilTime.internetText(now))"
    }
}

extension Claim.Created {
    /// Whole Unix seconds; nil where the scheme does not sign a time.
    func instant(_ allowance: Allowance) -> Int64? {
        switch self {
        case .unix(let seconds): return seconds
        case .wallClock(let seconds):
            let (instant, overflow) = seconds.subtractingReportingOverflow(allowance.timezoneOffset)
            return overflow ? seconds : instant
        case .unsigned: return nil
        }
    }
}
