import CountersignSchemes
import CountersignSeal
import CountersignWire

/// Searches for the mistake under which a failing signature would hold. Nothing else counts as evidence. A
/// caller without the secret cannot make a request for which a mistake is found, because each hypothesis
/// requires a valid MAC.
struct MistakeSearch: ~Copyable {
    private let scheme: any Scheme
    private let keys: [SigningKey]
    private let others: [KnownKey]
    private let mistakes: [Mistake]
    private var sent: ReceivedSignature
    private let isBodyWhole: Bool
    private let policy: Policy
    private(set) var budget: ExplanationBudget
    private var workspace = Workspace()

    init(in request: Request, scheme: any Scheme, question: Explanation.Question) {
        self.scheme = scheme
        budget = question.budget
        keys = [question.key, question.nextKey].compactMap { $0 }
        others = question.others
        mistakes = Mistake.mistakes(for: scheme.name)
        sent = ReceivedSignature(in: Draft(request), scheme: scheme.name)
        isBodyWhole = request.isBodyWhole
        policy = question.policy
    }

    /// Nil where no mistake that we know of explains it: another secret, then, or something that was changed.
    mutating func cause() -> Cause? {
        if let received = signingInput(of: sent.readable) { return cause(received) }
        for mistake in mistakes {
            guard case .repair(let repair) = mistake.correction, budget.take(mistake.work(on: sent.readable))
            else { continue }
            for mended in repair(sent.readable, scheme.name).prefix(8) {
                // In a body that was compressed the signature is found only now.
                if sent.interpretations.isEmpty {
                    sent = ReceivedSignature(in: mended.draft, scheme: scheme.name)
                }
                guard let received = signingInput(of: mended.draft) else { continue }
                if let found = causeAfterRepair(of: received, repair: mended) {
                    return found.mistake.map { Cause(mistake).and($0) } ?? Cause(mistake)
                }
            }
        }
        return nil
    }

    private mutating func cause(_ received: SigningInput) -> Cause? {
        if let reading = matchingReading(of: received) {
            return contradiction(received)?.and(reading) ?? reading.mistake
        }
        for input in [received] + alternatives(to: received) {
            if let known = others.first(where: { matchingReading(of: input, under: [$0.key]) != nil }) {
                return known.cause
            }
            if let other = macMistake(for: input) { return contradiction(received)?.and(other) ?? other }
            if let other = secretMistake(for: input) { return other }
        }
        return textMistake(for: received) ?? requestMistake(for: received)
    }

    /// That the message names another algorithm than the key's is evidence only beside a signature that
    /// holds.
    private func contradiction(_ received: SigningInput) -> Cause? {
        guard let named = received.claim.namedAlgorithm, !keys.contains(where: { $0.algorithm == named })
        else {
            return nil
        }
        return mistakes.first { $0.code == "alg-parameter" }.map { Cause($0, detail: "\(named.rawValue)") }
    }

    /// What the caller wrote may have been signed, or what it was mended to.
    private mutating func causeAfterRepair(of received: SigningInput, repair mended: Repair) -> (
        mistake: Cause?, Void
    )? {
        let asWritten =
            mended.written.isEmpty
            ? received.text : received.text.replacing(mended.written, with: mended.original)
        for text in [asWritten, received.text] {
            let input = received.with(text)
            if let reading = matchingReading(of: input) { return (reading.mistake, ()) }
            if let cause = macMistake(for: input) ?? self.textMistake(for: input) { return (cause, ()) }
        }
        return nil
    }

    // MARK: The kinds of mistakes

    /// Copies that are not wiped: the search tries encodings of them. In the gateway this happens only for an
    /// app whose policy says `debug`.
    private var secrets: [[UInt8]] {
        keys.filter { $0.publicKey == nil }.map { key in
            key.secret.withExposedBytes { bytes in (0..<bytes.count).map { bytes[$0] } }
        }
    }

    private mutating func secretMistake(for received: SigningInput) -> Cause? {
        for secret in secrets {
            for mistake in mistakes {
                guard case .secret(let undo) = mistake.correction, budget.take(16 * secret.count) else {
                    continue
                }
                for other in undo(secret) where other != secret && !other.isEmpty {
                    let key = SigningKey(Secret(copying: other.span))
                    if let reading = matchingReading(of: received, under: [key]) {
                        return Cause(mistake).and(reading)
                    }
                }
            }
        }
        return nil
    }

    private mutating func textMistake(for received: SigningInput) -> Cause? {
        for mistake in mistakes {
            // What is made of a text costs many times what it costs to sign it.
            guard case .text(let undo) = mistake.correction,
                received.text.bytes.count <= ExplanationBudget.largestBody,
                budget.take(mistake.work(on: received))
            else {
                continue
            }
            for text in undo(received) where text != received.text {
                let other = received.with(text)
                guard let reading = matchingReading(of: other) else { continue }
                return Cause(mistake, difference: Difference(signed: other, received: received)).and(reading)
            }
        }
        return nil
    }

    private mutating func macMistake(for received: SigningInput) -> Cause? {
        for secret in secrets {
            for mistake in mistakes {
                guard case .mac(let undo) = mistake.correction, budget.take(mistake.work(on: received))
                else { continue }
                for other in undo(received, secret) {
                    for reading in sent.interpretations
                    where SignatureVerifier.compare(other.bytes.span, withSent: reading.mac) == .equal {
                        return Cause(mistake, detail: other.name).and(reading)
                    }
                }
            }
        }
        return nil
    }

    /// One mistake, then two at once.
    private mutating func requestMistake(for received: SigningInput) -> Cause? {
        var variants: [(mistake: Mistake, index: Int, input: SigningInput)] = []
        var tried: Set<[UInt8]> = [received.text.bytes]
        for (index, mistake) in mistakes.enumerated() {
            guard case .request(let undo) = mistake.correction,
                budget.take(mistake.work(on: received.draft))
            else { continue }
            var kept = 0
            for draft in undo(received.draft) {
                guard let other = signingInput(of: draft), tried.insert(other.text.bytes).inserted else {
                    continue
                }
                if let reading = matchingReading(of: other) {
                    return Cause(mistake, difference: Difference(signed: other, received: received)).and(
                        reading)
                }
                kept += 1
                if kept <= ExplanationBudget.maximumVariants { variants.append((mistake, index, other)) }
            }
        }
        for first in variants {
            for second in mistakes[(first.index + 1)...] where second.code != first.mistake.code {
                guard case .request(let undo) = second.correction,
                    budget.take(second.work(on: first.input.draft))
                else { continue }
                for draft in undo(first.input.draft) {
                    guard let other = signingInput(of: draft), tried.insert(other.text.bytes).inserted else {
                        continue
                    }
                    guard let reading = matchingReading(of: other) else { continue }
                    return Cause(first.mistake, difference: Difference(signed: other, received: received))
                        .and(Cause(second)).and(reading)
                }
            }
            if budget.isSpent { return nil }
        }
        return nil
    }

    // MARK: Trying

    /// Nil where the draft cannot be read, or the budget is spent.
    private mutating func signingInput(of draft: Draft) -> SigningInput? {
        guard budget.take(ExplanationBudget.hypothesis + draft.readBytes) else { return nil }
        let request = request(draft)
        do throws(Refusal) {
            guard let claim = try scheme.claim(in: request, by: policy, workspace: &workspace) else {
                return nil
            }
            try scheme.writeStringToSign(for: claim, of: request, into: &workspace)
            return signingInput(for: claim, draft: draft)
        } catch {
            return nil
        }
    }

    /// The other spellings that the scheme takes the same request in: a client that uses one may be mistaken
    /// in its secret, too.
    private mutating func alternatives(to received: SigningInput) -> [SigningInput] {
        let request = request(received.draft)
        var found: [SigningInput] = []
        do throws(Refusal) {
            // Read again: others may have been read since.
            guard let claim = try scheme.claim(in: request, by: policy, workspace: &workspace) else {
                return []
            }
            try scheme.writeStringToSign(for: claim, of: request, into: &workspace)
            while budget.take(ExplanationBudget.hypothesis + received.text.bytes.count),
                try scheme.writeAlternative(found.count, for: claim, of: request, into: &workspace)
                    == .written
            {
                found.append(signingInput(for: claim, draft: received.draft))
            }
        } catch {
            return []
        }
        return found
    }

    private func request(_ draft: Draft) -> Request {
        var request = draft.request()
        request.isBodyWhole = isBodyWhole
        return request
    }

    /// What lies in the workspace.
    private func signingInput(for claim: Claim, draft: Draft) -> SigningInput {
        let text = SigningString(bytes: workspace.text.bytes.array, secretAt: workspace.text.secretOffset)
        let canonical = [UInt8](scheme.canonicalRequest(in: workspace))
        return SigningInput(
            scheme: scheme.name, claim: claim, draft: draft, text: text, canonicalRequest: canonical)
    }

    /// The reading of the sent signature that holds for this text; nil where none does.
    private mutating func matchingReading(of input: SigningInput, under others: [SigningKey]? = nil)
        -> ReceivedSignature.Interpretation?
    {
        workspace.text = StringToSign(input.text.bytes, secretAt: input.text.secretAt)
        let claim = Claim(copying: input.claim)
        // What the message says of its algorithm is judged apart.
        claim.namedAlgorithm = nil
        for key in others ?? keys {
            guard budget.takeTrial(of: input.text, under: key) else { return nil }
            for reading in sent.interpretations(under: key, claim: claim) {
                claim.mac = reading.mac
                if SignatureVerifier.compare(claim, with: key, workspace: workspace) == .equal {
                    return reading
                }
            }
        }
        return nil
    }
}

extension Scheme {
    /// The claim of the signature that the policy chooses.
    func claim(in request: Request, by policy: Policy, workspace: inout Workspace) throws(Refusal) -> Claim? {
        workspace.settings = policy.schemeSettings
        guard let claim = try claim(in: request, workspace: &workspace) else { return nil }
        guard let label = try SchemePolicy(policy, scheme: name).labelOverride(for: claim, in: request) else {
            return claim
        }
        return try self.claim(in: request, labelled: label, workspace: &workspace)
    }
}

extension Cause {
    fileprivate func and(_ reading: ReceivedSignature.Interpretation) -> Cause {
        reading.mistake.map { and($0) } ?? self
    }
}
