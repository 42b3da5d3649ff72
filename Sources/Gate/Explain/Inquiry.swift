import CountersignSchemes
import CountersignSeal
import CountersignWire

/// Looks for the mistake under which a signature that does not hold would hold. Nothing else counts as evidence, and
/// nobody without the secret can make a request for which one is found: each hypothesis is a MAC to be hit.
struct Inquiry: ~Copyable {
    private let scheme: any Scheme
    private let keys: [SigningKey]
    private let others: [KnownKey]
    private let mistakes: [Mistake]
    private var sent: SentSignature
    private let isBodyWhole: Bool
    private let policy: Policy
    private var budget: Budget
    private var workspace = Workspace()

    init(_ request: Request, _ scheme: any Scheme, _ question: Explanation.Question) {
        self.scheme = scheme
        budget = Budget(question.time)
        keys = [question.key, question.nextKey].compactMap { $0 }
        others = question.others
        mistakes = Mistake.those(of: scheme.name)
        sent = SentSignature(Draft(request), scheme.name)
        isBodyWhole = request.isBodyWhole
        policy = question.policy
    }

    /// Nil where no mistake that we know of explains it: another secret, then, or something that was changed.
    mutating func cause() -> Cause? {
        if let received = spelling(of: sent.readable) { return cause(received) }
        for mistake in mistakes {
            guard case .repair(let repair) = mistake.undo, !budget.isSpent else { continue }
            for mended in repair(sent.readable, scheme.name).prefix(8) {
                // In a body that was compressed the signature is found only now.
                if sent.readings.isEmpty { sent = SentSignature(mended.draft, scheme.name) }
                guard let received = spelling(of: mended.draft) else { continue }
                if let found = asRepaired(received, mended) {
                    return found.mistake.map { Cause(mistake).and($0) } ?? Cause(mistake)
                }
            }
        }
        return nil
    }

    private mutating func cause(_ received: Spelling) -> Cause? {
        if let reading = holds(received) { return contradiction(received)?.and(reading) ?? reading.mistake }
        for spelling in [received] + respelled(received) {
            if let known = others.first(where: { holds(spelling, under: [$0.key]) != nil }) { return known.cause }
            if let other = mac(spelling) { return contradiction(received)?.and(other) ?? other }
            if let other = secret(spelling) { return other }
        }
        return text(received) ?? request(received)
    }

    /// That the message names another algorithm than the key's is evidence only beside a signature that holds.
    private func contradiction(_ received: Spelling) -> Cause? {
        guard let named = received.claim.namedAlgorithm, !keys.contains(where: { $0.algorithm == named }) else {
            return nil
        }
        return mistakes.first { $0.code == "alg-parameter" }.map { Cause($0, "\(named.rawValue)") }
    }

    /// What the caller wrote may have been signed, or what it was mended to.
    private mutating func asRepaired(_ received: Spelling, _ mended: Repair) -> (mistake: Cause?, Void)? {
        let asWritten =
            mended.written.isEmpty ? received.text : received.text.replacing(mended.written, with: mended.original)
        for text in [asWritten, received.text] {
            let spelling = received.with(text)
            if let reading = holds(spelling) { return (reading.mistake, ()) }
            if let cause = mac(spelling) ?? self.text(spelling) { return (cause, ()) }
        }
        return nil
    }

    // MARK: The kinds of mistakes

    /// Copies, which nobody wipes: the price of trying spellings of them, paid where an app's policy says `debug` only.
    private var secrets: [[UInt8]] {
        keys.filter { $0.publicKey == nil }.map { key in
            key.secret.withExposedBytes { bytes in (0..<bytes.count).map { bytes[$0] } }
        }
    }

    private mutating func secret(_ received: Spelling) -> Cause? {
        for secret in secrets {
            for mistake in mistakes {
                guard case .secret(let undo) = mistake.undo, !budget.isSpent else { continue }
                for other in undo(secret) where other != secret && !other.isEmpty {
                    let key = SigningKey(Secret(copying: other.span))
                    if let reading = holds(received, under: [key]) { return Cause(mistake).and(reading) }
                }
            }
        }
        return nil
    }

    private mutating func text(_ received: Spelling) -> Cause? {
        for mistake in mistakes {
            // What is made of a text costs many times what it costs to sign it.
            guard case .text(let undo) = mistake.undo, received.text.bytes.count <= Budget.body, !budget.isSpent else {
                continue
            }
            for text in undo(received) where text != received.text {
                let other = received.with(text)
                guard let reading = holds(other) else { continue }
                return Cause(mistake, difference: Difference(signed: other, received: received)).and(reading)
            }
        }
        return nil
    }

    private mutating func mac(_ received: Spelling) -> Cause? {
        for secret in secrets {
            for mistake in mistakes {
                guard case .mac(let undo) = mistake.undo, !budget.isSpent else { continue }
                budget.spend(on: received.text.bytes.count)
                for other in undo(received, secret) {
                    for reading in sent.readings where Verify.compare(other.bytes.span, reading.mac) == .equal {
                        return Cause(mistake, other.name).and(reading)
                    }
                }
            }
        }
        return nil
    }

    /// One mistake, then two at once.
    private mutating func request(_ received: Spelling) -> Cause? {
        var variants: [(mistake: Mistake, index: Int, spelling: Spelling)] = []
        var tried: Set<[UInt8]> = [received.text.bytes]
        for (index, mistake) in mistakes.enumerated() {
            guard case .request(let undo) = mistake.undo, !budget.isSpent else { continue }
            var kept = 0
            for draft in undo(received.draft) {
                guard let other = spelling(of: draft), tried.insert(other.text.bytes).inserted else { continue }
                if let reading = holds(other) {
                    return Cause(mistake, difference: Difference(signed: other, received: received)).and(reading)
                }
                kept += 1
                if kept <= Budget.kept { variants.append((mistake, index, other)) }
            }
        }
        for first in variants {
            for second in mistakes[(first.index + 1)...] where second.code != first.mistake.code {
                guard case .request(let undo) = second.undo, !budget.isSpent else { continue }
                for draft in undo(first.spelling.draft) {
                    guard let other = spelling(of: draft), tried.insert(other.text.bytes).inserted else { continue }
                    guard let reading = holds(other) else { continue }
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
    private mutating func spelling(of draft: Draft) -> Spelling? {
        guard !budget.isSpent else { return nil }
        let request = request(draft)
        do throws(Refusal) {
            guard let claim = try scheme.claim(in: request, by: policy, &workspace) else { return nil }
            try scheme.spell(claim, request, &workspace)
            return written(claim, draft)
        } catch {
            return nil
        }
    }

    /// The other spellings that the scheme takes the same request in: a client that uses one may be mistaken in its
    /// secret, too.
    private mutating func respelled(_ received: Spelling) -> [Spelling] {
        let request = request(received.draft)
        var found: [Spelling] = []
        do throws(Refusal) {
            // Read again: others may have been read since.
            guard let claim = try scheme.claim(in: request, by: policy, &workspace) else { return [] }
            try scheme.spell(claim, request, &workspace)
            while try scheme.respell(found.count, claim, request, &workspace) == .written {
                found.append(written(claim, received.draft))
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
    private func written(_ claim: Claim, _ draft: Draft) -> Spelling {
        let text = Text(bytes: workspace.text.bytes.array, secretAt: workspace.text.secretOffset)
        let canonical = scheme.name == .sigV4 ? [UInt8](workspace.canonicalRequest) : []
        return Spelling(scheme: scheme.name, claim: claim, draft: draft, text: text, canonicalRequest: canonical)
    }

    /// The reading of the sent signature that holds for this text; nil where none does.
    private mutating func holds(_ spelling: Spelling, under others: [SigningKey]? = nil) -> SentSignature.Reading? {
        workspace.text = StringToSign(spelling.text.bytes, secretAt: spelling.text.secretAt)
        let claim = Claim(copying: spelling.claim)
        // What the message says of its algorithm is judged apart.
        claim.namedAlgorithm = nil
        for key in others ?? keys {
            guard !budget.isSpent else { return nil }
            budget.spend(on: spelling.text.bytes.count, key)
            for reading in sent.readings(under: key, claim) {
                claim.mac = reading.mac
                if Verify.compare(claim, key, workspace) == .equal { return reading }
            }
        }
        return nil
    }
}

extension Scheme {
    /// The claim of the signature that the policy chooses.
    func claim(in request: Request, by policy: Policy, _ workspace: inout Workspace) throws(Refusal) -> Claim? {
        workspace.publicURL = policy.publicURL.map { Array($0.utf8) }
        workspace.formMD5Key = policy.formMD5Key
        guard let claim = try claim(in: request, &workspace) else { return nil }
        guard let label = try Allowance(policy, name).otherLabel(than: claim, in: request) else { return claim }
        return try self.claim(in: request, labelled: label, &workspace)
    }
}

extension Cause {
    fileprivate func and(_ reading: SentSignature.Reading) -> Cause { reading.mistake.map { and($0) } ?? self }
}
