import CountersignSchemes
import CountersignSeal
import CountersignWire

/// A verdict reached offline, with everything that led to it, for a person who wonders why. It shows the string to
/// sign; never a secret, never an expected MAC.
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
    /// The usual mistake that explains the refusal; nil where none does.
    package private(set) var cause: String?
    /// What the gate would ask for beyond a signature that holds.
    package private(set) var notes: [String] = []

    /// What is known at the desk.
    package struct Question: Sendable {
        package var scheme: SchemeName
        /// Nil where any will do.
        package var keyID: KeyID?
        package var secret: Secret
        /// The key where it is more than a shared secret; nil where `secret` says it all.
        package var key: SigningKey?
        /// Whole Unix seconds to judge by; nil where freshness is not asked about.
        package var at: Int64?
        package var policy: Policy

        package init(scheme: SchemeName, keyID: KeyID?, secret: Secret, at: Int64?, policy: Policy = Policy()) {
            self.scheme = scheme
            self.keyID = keyID
            self.secret = secret
            self.at = at
            self.policy = policy
        }
    }

    package init(of request: Request, _ question: Question, schemes: Registry = .standard) {
        do throws(Refusal) {
            try judge(request, question, schemes)
        } catch {
            verdict = .refused(error)
        }
    }

    private mutating func judge(_ request: Request, _ question: Question, _ schemes: Registry) throws(Refusal) {
        guard let scheme = schemes.scheme(named: question.scheme) else {
            throw Refusal(.malformed, "scheme \(question.scheme.rawValue) is not spoken here")
        }
        var workspace = Workspace()
        guard let claim = try scheme.claim(in: request, &workspace) else {
            throw Refusal(.unsigned, "no signs of \(question.scheme.rawValue) in this request")
        }
        stages.append(Stage(name: "claim", text: Explanation.describe(claim)))
        workspace.publicURL = question.policy.publicURL.map { Array($0.utf8) }
        try scheme.spell(claim, request, &workspace)
        stages.append(Stage(name: "string to sign", text: workspace.text.shown))
        let digest = SHA256.digest(workspace.text.bytes.span)
        stages.append(Stage(name: "SHA-256 of the string to sign", text: Hex.encode(digest.span)))
        if !request.body.isEmpty {
            stages.append(Stage(name: "SHA-256 of the body", text: Explanation.bodyDigest(request.body)))
        }
        notes = claim.shortfalls.descriptions

        if let keyID = question.keyID, keyID != claim.keyID {
            throw Refusal(.unknownKey, "the request names key \(claim.keyID); expected \(keyID)")
        }
        let key = question.key ?? SigningKey(question.secret)
        let candidate = Candidate(key: key, nextKey: nil, release: nil)
        guard try Verify.signer(of: claim, request, scheme, candidate, &workspace) != nil else {
            cause = Mistake.explaining(claim, of: request, scheme, question.secret)
            throw Refusal(.badSignature, "another secret, or something that is covered was changed")
        }
        do throws(Refusal) {
            // A signature that leaves the body out holds all the same; that the gate wants more is among the notes.
            if case .unsigned = claim.body {} else { try claim.body.check(request.body.span) }
        } catch {
            cause = "the body is not the one that was signed: changed, compressed or written anew after signing"
            throw error
        }
        guard let now = question.at else { return }
        let allowance = Allowance(question.policy, question.scheme)
        do throws(Refusal) {
            _ = try Freshness().judge(
                claim.created, claim.expires, claim.lifetime, allowance, at: now)
        } catch {
            cause = ClockError(claim, allowance, now)?.description
            throw error
        }
    }

    private static func describe(_ claim: Claim) -> String {
        var lines = ["key id: \(claim.keyID)"]
        switch claim.created {
        case .unix(let seconds): lines.append("created: \(seconds)")
        case .wallClock(let seconds):
            lines.append("created: \(CivilTime(seconds: seconds).description), without a zone")
        case .unsigned: lines.append("created: not said")
        }
        if let expires = claim.expires { lines.append("expires: \(expires)") }
        if case .nonce(let nonce) = claim.replay { lines.append("nonce: \(nonce.span.text)") }
        return lines.joined(separator: "\n")
    }

    private static func bodyDigest(_ body: [UInt8]) -> String {
        let digest = SHA256.digest(body.span)
        return "\(Hex.encode(digest.span)) (sha-256=:\(Base64.encode(digest.span, .standard)):)"
    }
}
