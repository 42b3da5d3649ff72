import CountersignSchemes
import CountersignWire

extension Gate {
    /// The release that a request names, or nearly, where its app wants callers told why they are refused
    /// (policy `debug`); nil for all others.
    package func releaseToExplain(
        for request: Request, judgement: Judgement
    ) -> AppRelease? {
        guard keys.explainsRefusals, let release = namedRelease(of: request, judgement: judgement),
            release.policy.detail == .exact
        else { return nil }
        return release
    }

    /// Why a request was refused, for operators: whatever the app's policy tells callers. Nil if the request
    /// names no release. This costs as much as `budget` says, on the thread that asks.
    package func explanationForOperators(
        of refusal: Refusal, for request: Request, judgement: Judgement, within budget: ExplanationBudget
    ) -> Explanation? {
        guard let release = namedRelease(of: request, judgement: judgement) else { return nil }
        return explanation(of: refusal, for: request, judgement: judgement, naming: release, within: budget)
    }

    private func namedRelease(of request: Request, judgement: Judgement) -> AppRelease? {
        judgement.release ?? release(nearestTo: request, judgement: judgement)
    }

    /// Why a request was refused; nil where the caller is to be told nothing. `release` is that of
    /// ``releaseToExplain(for:judgement:)``. This costs as much as `budget` says, on the thread that
    /// asks.
    package func explanation(
        of refusal: Refusal, for request: Request, judgement: Judgement, naming release: AppRelease,
        within budget: ExplanationBudget
    ) -> Explanation? {
        var question = Explanation.Question(
            scheme: release.scheme, keyID: release.id, key: release.key, at: clock.now, policy: release.policy
        )
        question.nextKey = release.nextKey
        question.budget = budget
        question.others = keys.siblings(of: release).map(KnownKey.init(of:))
        if let candidate = judgement.verificationKey, let session = candidate.session {
            question.setSession(session, token: judgement.keyID, key: candidate.key, release: release)
        }
        let explanation = Explanation(
            of: request, judgement: judgement, refusal: refusal, question: question, schemes: schemes)
        // A key id that only resembles one of ours belongs to no release, unless the signature says
        // otherwise.
        return refusal.code == .unknownKey && explanation.cause == nil ? nil : explanation
    }

    /// The release of a key id that is found although the claim around it cannot be read; for a session that
    /// names no release, one of those that it could name.
    private func release(
        nearestTo request: Request, judgement: Judgement
    ) -> AppRelease? {
        if let session = judgement.session { return keys.release(for: session) }
        for (scheme, id) in CredentialLocation.keyIDs(in: request, schemes: schemes) {
            if let release = try? keys.release(of: id), release.scheme == scheme { return release }
        }
        return nil
    }
}
