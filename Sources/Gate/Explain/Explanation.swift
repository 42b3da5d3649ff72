import CountersignSchemes
import CountersignSeal
import CountersignWire

/// A verdict with everything that led to it, for people to read: the stages, and the mistake that explains a
/// refusal. It shows what the caller sent and the string to sign that follows from it; never a
/// secret, never an expected MAC, nor anything between the two.
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
    /// Nil if the request was accepted or if no known mistake explains the refusal: a forged request has
    /// none.
    package private(set) var cause: Cause?
    /// The gate's requirements that the signature does not meet, whether or not it holds.
    package private(set) var notes: [String] = []
    /// The string to sign of the request as it was received, with a mark for the secret; nil where it has
    /// none.
    package private(set) var stringToSign: [UInt8]?

    /// sigv4's canonical request, likewise.
    package private(set) var canonicalRequest: [UInt8]?

    /// What the user of the explanation knows about the request.
    package struct Question: Sendable {
        package var scheme: SchemeName
        /// Nil for any key id.
        package var keyID: KeyID?
        package var key: SigningKey
        package var nextKey: SigningKey?
        /// Keys that the request might have been signed with by mistake.
        package var others: [KnownKey] = []
        /// The time to judge by, in whole Unix seconds; nil to skip the freshness check.
        package var at: Int64?
        package var policy: Policy
        /// The session whose key it is; nil for a release's key. A session's requests also name their
        /// release.
        var session: Session?
        /// The platform and version that the key was made for, if known: a scheme that signs them must not
        /// state others.
        package var platform: String?
        package var version: String?
        package var retirement: AppRelease.Retirement?
        /// What the search for a mistake may cost.
        package var budget = ExplanationBudget.command

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
    package init(of request: Request, question: Question, schemes: SchemeRegistry = .standard) async {
        guard let scheme = schemes.scheme(named: question.scheme), scheme.detect(in: request) != .absent
        else {
            self.init(unsigned: question.scheme, request: request)
            return
        }
        let deployment = OfflineDeployment(question)
        let gate = deployment.gate(for: request, schemes: schemes)
        let judgement = await gate.judgement(of: request, for: deployment.destination)
        self.init(
            of: request, judgement: judgement, refusal: judgement.refusal, question: question,
            schemes: schemes)
    }

    /// What the gate found. `refusal` is its own, or that of what came after it.
    init(
        of request: Request, judgement: Judgement, refusal: Refusal?, question: Question,
        schemes: SchemeRegistry
    ) {
        if let scheme = schemes.scheme(named: question.scheme) {
            addStages(for: request, signedBy: scheme, question: question)
        }
        guard let refusal else {
            addStage("verdict", text: "accepted")
            return
        }
        verdict = .refused(refusal)
        cause = Cause.find(
            for: refusal, request: request, judgement: judgement, question: question, schemes: schemes)
        addStage(
            "verdict",
            text: "refused: \(refusal.code.name)\(refusal.detail.isEmpty ? "" : ", \(refusal.detail)")")
    }

    private init(unsigned scheme: SchemeName, request: Request) {
        let detail = Explanation.descriptionOfAbsence(of: scheme, in: request)
        verdict = .refused(Refusal(.unsigned, detail: detail))
        addStage("verdict", text: "refused: \(Refusal.Code.unsigned.name), \(detail)")
    }

    mutating func addStage(_ name: String, text: String) { stages.append(Stage(name: name, text: text)) }

    /// The claim and the string to sign, as far as they can be read; whether the signature holds is not asked
    /// here.
    private mutating func addStages(for request: Request, signedBy scheme: any Scheme, question: Question) {
        var workspace = Workspace()
        do throws(Refusal) {
            guard let claim = try scheme.claim(in: request, by: question.policy, workspace: &workspace) else {
                return
            }
            try scheme.writeStringToSign(for: claim, of: request, into: &workspace)
            addStages(for: claim, of: scheme, request: request, workspace: workspace)
            addStage("not signed by this scheme", text: Explanation.describe(scheme.coverage))
            stringToSign = Array(workspace.text.displayText.utf8)
            canonicalRequest = Array(scheme.canonicalRequest(in: workspace).utf8)
            notes = claim.unmetRequirements.descriptions
        } catch {
            // The refusal says what is wrong with it.
        }
    }
}

extension Cause {
    /// Finds the cause by the step at which the request was refused, because the evidence differs between
    /// steps.
    fileprivate static func find(
        for refusal: Refusal, request: Request, judgement: Judgement, question: Explanation.Question,
        schemes: SchemeRegistry
    ) -> Cause? {
        switch judgement.step {
        case .authority, .end: return ruleViolation(refusal)
        case .claim, .key, .signature:
            guard let scheme = schemes.scheme(named: question.scheme) else { return nil }
            var inquiry = MistakeSearch(in: request, scheme: scheme, question: question)
            return inquiry.cause()
        case .policy:
            guard let session = question.session, let claim = judgement.claim, refusal.code == .badSignature
            else {
                return ruleViolation(refusal)
            }
            return releaseError(in: claim, session: session, question: question) ?? ruleViolation(refusal)
        case .body:
            guard let claim = judgement.claim, refusal.code == .bodyMismatch else { return nil }
            return Mistake.bodyCause(in: Draft(request), expected: claim.body, within: question.budget)
        case .freshness:
            guard let claim = judgement.claim, let now = question.at else { return nil }
            return clockError(
                in: claim, policy: SchemePolicy(question.policy, scheme: question.scheme), now: now)
        case .release, .replay, .session, .device: return ruleViolation(refusal)
        }
    }
}

extension Explanation {
    /// Adds the claim, the string to sign with its parts, and the digests, in readable form.
    mutating func addStages(
        for claim: Claim, of scheme: any Scheme, request: Request, workspace: borrowing Workspace
    ) {
        addStage("claim", text: Explanation.describe(claim))
        let shown = workspace.text.displayText
        let canonical = scheme.canonicalRequest(in: workspace)
        if !canonical.isEmpty {
            addStage("canonical request", text: canonical)
        } else if let layout = claim.scheme.layout {
            addParts(of: shown, layout: layout)
        }
        addStage("string to sign", text: shown)
        // A text with the secret inside has no digest that may be shown.
        if claim.algorithm != .md5OverSecret {
            addStage(
                "SHA-256 of the string to sign",
                text: Hex.encode(SHA256.digest(workspace.text.bytes.span).span))
        }
        if !request.body.isEmpty {
            addStage("SHA-256 of the body", text: Explanation.bodyDigest(request.body))
        }
    }

    /// Adds the components or the parameters of a string to sign, one on each line.
    private mutating func addParts(of text: String, layout: SchemeLayout) {
        if let first = layout.firstParameterLine {
            let parameters =
                text.split(separator: "\n", maxSplits: first, omittingEmptySubsequences: false).last ?? ""
            addStage("parameters", text: parameters.split(separator: "&").joined(separator: "\n"))
        } else if case .named = layout.lines {
            addStage("components", text: text.split(separator: "\n").dropLast().joined(separator: "\n"))
        }
    }

    private static func describe(_ claim: Claim) -> String {
        var lines = ["scheme: \(claim.scheme.rawValue)", "key id: \(claim.keyID)"]
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
        return "\(Hex.encode(digest.span)) (sha-256=:\(Base64.encode(digest.span, as: .standard)):)"
    }

    /// The parts of a request that an attacker can change without detection.
    static func describe(_ coverage: Coverage) -> String {
        let parts = coverage.uncovered.map(\.rawValue).joined(separator: ", ")
        return ([parts] + coverage.weaknesses).joined(separator: "\n")
    }

    /// Names the scheme whose signs the request bears instead of `scheme`, or its upload ticket.
    static func descriptionOfAbsence(of scheme: SchemeName, in request: Request) -> String {
        let present = SchemeRegistry.standard.schemes.filter { $0.detect(in: request) == .present }.map(
            \.name.rawValue)
        let hint = present.isEmpty ? "" : "; it looks signed with \(present.joined(separator: " or "))"
        if request.names.contains(.countersignTicket) {
            return
                "no signs of \(scheme.rawValue) in this request\(hint); it bears an upload ticket, "
                + "which only the "
                + "server that issued it can judge (its log has the reason of a refusal)"
        }
        return "no signs of \(scheme.rawValue) in this request\(hint)"
    }
}

extension Explanation {
    /// `{"stages":[{"name":…,"text":…}],"cause":{"code":…,"sentence":…,"remedy":…}|null,"differs":{…}}`, each
    /// stage cut after that many bytes.
    package func json(longest: Int = .max) -> JSONValue {
        var members: [(name: String, value: JSONValue)] = [
            ("stages", stagesJSON(longest: longest)), ("cause", cause?.json ?? .null),
        ]
        if let difference = cause?.difference { members.append(("differs", difference.json)) }
        return .object(members)
    }

    package func stagesJSON(longest: Int = .max) -> JSONValue {
        .array(
            stages.map { stage in
                var text = stage.text
                if text.utf8.count > longest {
                    text =
                        String(decoding: text.utf8.prefix(longest), as: UTF8.self)
                        + "… (\(text.utf8.count) bytes)"
                }
                return ["name": .string(stage.name), "text": .string(text)]
            })
    }
}

extension Cause {
    package var json: JSONValue {
        ["code": .string(code), "sentence": .string(sentence), "remedy": .string(remedy)]
    }
}

extension Difference {
    package var json: JSONValue {
        [
            "component": .string(component), "line": .integer(Int64(line)), "byte": .integer(Int64(byte)),
            "signed": .string(signed), "received": .string(received),
        ]
    }
}
