import CountersignSchemes
import CountersignSeal
import CountersignWire

/// A verdict with everything that led to it, for a person who wonders why: the stages, and the mistake that explains a
/// refusal. It shows what the caller sent and the string to sign that follows from it; never a secret, never an expected
/// MAC, nor anything between the two.
package struct Explanation: Sendable {
    /// One step, in the order in which the gate takes them.
    package struct Stage: Sendable, Equatable {
        package var name: String
        package var text: String
    }

    package enum Verdict: Sendable, Equatable {
        case accepted
        case refused(Refusal)
    }

    package private(set) var stages: [Stage] = []
    package private(set) var verdict = Verdict.accepted
    /// Nil where it was accepted, and where no mistake that we know of explains the refusal: a forged request has none.
    package private(set) var cause: Cause?
    /// What the gate would ask for beyond a signature that holds.
    package private(set) var notes: [String] = []
    /// The string to sign of the request as it was received, with a mark for the secret; nil where it has none.
    package private(set) var spelled: [UInt8]?

    /// sigv4's canonical request, likewise.
    package private(set) var canonicalRequest: [UInt8]?

    /// What is known by who asks.
    package struct Question: Sendable {
        package var scheme: SchemeName
        /// Nil where any will do.
        package var keyID: KeyID?
        package var key: SigningKey
        package var nextKey: SigningKey?
        /// Keys that the request might have been signed with by mistake.
        package var others: [KnownKey] = []
        /// Whole Unix seconds to judge by; nil where freshness is not asked about.
        package var at: Int64?
        package var policy: Policy
        /// Whose key it is, where it is a session's: its requests name their release beside it.
        var session: Session?
        /// Why the gate refused it; nil where nobody has asked it. It knows more: what was seen before, and what an app
        /// allows.
        package var refusal: Refusal?
        /// How long the search for a mistake may take.
        package var time = Budget.Time.untilDone

        package init(scheme: SchemeName, keyID: KeyID?, key: SigningKey, at: Int64?, policy: Policy = Policy()) {
            self.scheme = scheme
            self.keyID = keyID
            self.key = key
            self.at = at
            self.policy = policy
        }
    }

    package init(of request: Request, _ question: Question, schemes: Registry = .standard) {
        do throws(Refusal) {
            try judge(request, question, schemes)
            if let refusal = question.refusal {
                cause = cause ?? Cause.ofRule(refusal)
                throw refusal
            }
            add("verdict", "accepted")
        } catch {
            let refusal = question.refusal ?? error
            verdict = .refused(refusal)
            add("verdict", "refused: \(refusal.code.name)\(refusal.detail.isEmpty ? "" : ", \(refusal.detail)")")
        }
    }

    mutating func add(_ name: String, _ text: String) { stages.append(Stage(name: name, text: text)) }

    private mutating func judge(_ request: Request, _ question: Question, _ schemes: Registry) throws(Refusal) {
        guard let scheme = schemes.scheme(named: question.scheme) else {
            throw Refusal(.malformed, "scheme \(question.scheme.rawValue) is not spoken here")
        }
        let claim: Claim
        do throws(Refusal) {
            claim = try read(request, scheme, question)
        } catch {
            var inquiry = Inquiry(request, scheme, question)
            cause = inquiry.cause()
            throw error
        }
        do throws(Refusal) {
            // A signature that leaves the body out holds all the same; that the gate wants more is among the notes.
            if case .unsigned = claim.body {} else if request.isBodyWhole { try claim.body.check(request.body.span) }
        } catch {
            cause = Mistake.ofBody(Draft(request), claim.body)
            throw error
        }
        if let session = question.session { cause = Cause.ofRelease(named: claim, beside: session, question) }
        guard let now = question.at else { return }
        let allowance = Allowance(question.policy, question.scheme)
        do throws(Refusal) {
            _ = try Freshness().judge(
                claim.created, claim.expires, claim.lifetime, allowance, at: now)
        } catch {
            cause = Cause.ofClock(claim, allowance, now)
            throw error
        }
    }

    /// The claim, once its signature holds.
    private mutating func read(
        _ request: Request, _ scheme: any Scheme, _ question: Question
    ) throws(Refusal) -> Claim {
        var workspace = Workspace()
        guard let claim = try scheme.claim(in: request, by: question.policy, &workspace) else {
            throw Refusal(.unsigned, Explanation.absence(of: question.scheme, in: request))
        }
        try scheme.spell(claim, request, &workspace)
        note(claim, request, workspace)
        add("not signed by this scheme", Explanation.describe(scheme.coverage))
        spelled = Array(workspace.text.shown.utf8)
        if claim.scheme == .sigV4 { canonicalRequest = Array(workspace.canonicalRequest.utf8) }
        notes = claim.shortfalls.descriptions
        if let keyID = question.keyID, keyID != claim.keyID {
            throw Refusal(.unknownKey, "the request names key \(claim.keyID); expected \(keyID)")
        }
        let candidate = Candidate(key: question.key, nextKey: question.nextKey, release: nil)
        guard try Verify.signer(of: claim, request, scheme, candidate, &workspace) != nil else {
            throw Refusal(.badSignature, "another secret, or something that is covered was changed")
        }
        if let ambiguity = scheme.ambiguity(of: request, workspace) { notes.append(ambiguity) }
        if case .leftOpen = claim.body, question.policy.unsignedPayload == .refused {
            notes.append("the body is not signed; policy unsigned-payload=on would let it through")
        }
        return claim
    }
}
