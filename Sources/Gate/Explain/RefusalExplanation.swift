import CountersignSchemes
import CountersignWire

extension Gate {
    /// Why a request was refused, where the app of the release that it names wants its callers told (policy `debug`);
    /// nil for all others, for whom none of this work is done.
    nonisolated(nonsending) package func explanation(
        of refusal: Refusal, for request: Request, _ judgement: Judgement
    ) async -> Explanation? {
        var release = judgement.release
        if release == nil { release = await self.release(nearlyNamedBy: request, judgement) }
        guard let release, release.policy.detail == .exact else { return nil }
        var question = Explanation.Question(
            scheme: release.scheme, keyID: release.id, key: release.key, at: clock.now, policy: release.policy)
        question.nextKey = release.nextKey
        question.time = .atMost(50_000_000)
        question.others = await keys.siblings(of: release).map(KnownKey.init(of:))
        if let candidate = judgement.candidate, let session = candidate.session {
            question.ask(about: session, judgement.keyID, candidate.key, callingFrom: release)
        }
        let explanation = Explanation(of: request, judgement, refusal: refusal, question, schemes: schemes)
        // A key id that only resembles one of ours belongs to no release, unless the signature says otherwise.
        return refusal.code == .unknownKey && explanation.cause == nil ? nil : explanation
    }

    /// The release of a key id that is found although the claim around it cannot be read; for a session that names no
    /// release, one of those that it could name.
    nonisolated(nonsending) private func release(
        nearlyNamedBy request: Request, _ judgement: Judgement
    ) async -> ReleaseKey? {
        if let session = judgement.session { return await keys.release(fitFor: session) }
        for (scheme, id) in SentPlace.keyIDs(in: request, schemes) {
            if let release = try? await keys.release(of: id), release.scheme == scheme { return release }
        }
        return nil
    }
}
