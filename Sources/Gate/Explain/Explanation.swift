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
    /// What the signature lacks of the least that the gate accepts, whether or not it holds.
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
        /// What the key was made for, where that is known: schemes that sign it must not say otherwise.
        package var platform: String?
        package var version: String?
        package var retirement: ReleaseKey.Retirement?
        /// How long the search for a mistake may take.
        package var time = Budget.Time.untilDone

        /// `policy` nil stands for one that allows this scheme, and sets nothing else.
        package init(scheme: SchemeName, keyID: KeyID?, key: SigningKey, at: Int64?, policy: Policy? = nil) {
            self.scheme = scheme
            self.keyID = keyID
            self.key = key
            self.at = at
            var allowing = Policy()
            allowing.schemes = [scheme]
            self.policy = policy ?? allowing
        }
    }

    /// Has the gate judge the request with what `question` knows, and no deployment.
    package init(of request: Request, _ question: Question, schemes: Registry = .standard) async {
        guard let scheme = schemes.scheme(named: question.scheme), scheme.trace(in: request) != .absent else {
            self.init(unsigned: question.scheme, request)
            return
        }
        let deployment = OfflineDeployment(question)
        let gate = deployment.gate(for: request, schemes: schemes)
        let judgement = await gate.judgement(of: request, for: deployment.destination)
        self.init(of: request, judgement, refusal: judgement.refusal, question, schemes: schemes)
    }

    /// What the gate found. `refusal` is its own, or that of what came after it.
    init(of request: Request, _ judgement: Judgement, refusal: Refusal?, _ question: Question, schemes: Registry) {
        if let scheme = schemes.scheme(named: question.scheme) { show(request, signedBy: scheme, asking: question) }
        guard let refusal else {
            add("verdict", "accepted")
            return
        }
        verdict = .refused(refusal)
        cause = Cause.of(refusal, request, judgement, question, schemes)
        add("verdict", "refused: \(refusal.code.name)\(refusal.detail.isEmpty ? "" : ", \(refusal.detail)")")
    }

    private init(unsigned scheme: SchemeName, _ request: Request) {
        let detail = Explanation.absence(of: scheme, in: request)
        verdict = .refused(Refusal(.unsigned, detail))
        add("verdict", "refused: \(Refusal.Code.unsigned.name), \(detail)")
    }

    mutating func add(_ name: String, _ text: String) { stages.append(Stage(name: name, text: text)) }

    /// The claim and the string to sign, as far as they can be read; whether the signature holds is not asked here.
    private mutating func show(_ request: Request, signedBy scheme: any Scheme, asking question: Question) {
        var workspace = Workspace()
        do throws(Refusal) {
            guard let claim = try scheme.claim(in: request, by: question.policy, &workspace) else { return }
            try scheme.spell(claim, request, &workspace)
            note(claim, request, workspace)
            add("not signed by this scheme", Explanation.describe(scheme.coverage))
            spelled = Array(workspace.text.shown.utf8)
            if claim.scheme == .sigV4 { canonicalRequest = Array(workspace.canonicalRequest.utf8) }
            notes = claim.shortfalls.descriptions
        } catch {
            // The refusal says what is wrong with it.
        }
    }
}

extension Cause {
    /// By the step at which the request was refused: what is evidence differs.
    fileprivate static func of(
        _ refusal: Refusal, _ request: Request, _ judgement: Judgement, _ question: Explanation.Question,
        _ schemes: Registry
    ) -> Cause? {
        switch judgement.step {
        case .authority, .end: return ofRule(refusal)
        case .claim, .key, .signature:
            guard let scheme = schemes.scheme(named: question.scheme) else { return nil }
            var inquiry = Inquiry(request, scheme, question)
            return inquiry.cause()
        case .policy:
            guard let session = question.session, let claim = judgement.claim, refusal.code == .badSignature else {
                return ofRule(refusal)
            }
            return ofRelease(named: claim, beside: session, question) ?? ofRule(refusal)
        case .body:
            guard let claim = judgement.claim, refusal.code == .bodyMismatch else { return nil }
            return Mistake.ofBody(Draft(request), claim.body)
        case .freshness:
            guard let claim = judgement.claim, let now = question.at else { return nil }
            return ofClock(claim, Allowance(question.policy, question.scheme), now)
        case .release, .replay, .session, .device: return ofRule(refusal)
        }
    }
}
