import CountersignSchemes
import CountersignSeal
import CountersignWire

/// Calls of the authority's own routes, signed by the release.
struct AuthorityRoutes: Sendable {
    let installation: Installation
    let surroundings: Surroundings

    /// Whose word it takes that an answer is the authority's.
    enum Trust {
        /// The authority's key. Where it is not known, nothing is genuine.
        case authority
        /// The same where it is known; else the answer proves itself by what it is used for, and may be used unproved.
        case authorityIfKnown
        /// Its key, or one that the answer's own content names and only the authority can have.
        case keys((Response) -> [KeyID: SigningKey])
    }

    /// A success to be read, and whose key it is signed with; nil for one that is taken unproved.
    struct Answered {
        let response: Response
        let signer: KeyID?
    }

    /// A refusal that says `stale` and the authority's time is answered by asking once more with that time; `body` makes what
    /// is sent anew, since a proof in it may hold the time.
    nonisolated(nonsending) func post(
        _ path: String, trust: Trust, _ body: (_ time: Int64) throws(ClientProblem) -> JSONValue
    ) async throws(ClientProblem) -> Answered {
        do {
            return try await postOnce(path, trust, body)
        } catch {
            guard case .refused(let notice) = error, let told = notice.timeTold else { throw error }
            surroundings.learn(told)
            return try await postOnce(path, trust, body)
        }
    }

    nonisolated(nonsending) private func postOnce(
        _ path: String, _ trust: Trust, _ body: (_ time: Int64) throws(ClientProblem) -> JSONValue
    ) async throws(ClientProblem) -> Answered {
        let time = try surroundings.now()
        let draft = installation.draft("POST", path, try body(time))
        let heard = try await Listener(surroundings: surroundings).ask(draft, as: installation.release, at: time) {
            keys(for: trust, $0)
        }
        surroundings.confirm(time, by: heard)
        switch heard {
        case .genuine(let answer):
            guard let notice = answer.notice else {
                return Answered(response: answer.response, signer: answer.keyID)
            }
            throw notice.isOfWrongCredentials ? .wrongCredentials : .refused(notice)
        case .begun: throw .notUnderstood("\(path): the answer is too long")
        case .unsigned(let response, let why):
            if response.status >= 400 {
                var notice = Notice(response)
                notice.isGenuine = installation.connectionVouches
                throw notice.isGenuine && notice.isOfWrongCredentials ? .wrongCredentials : .refused(notice)
            }
            guard case .authorityIfKnown = trust, installation.authorityKey == nil else {
                throw .notGenuine("\(path): \(why.detail)")
            }
            return Answered(response: response, signer: nil)
        }
    }

    private func keys(for trust: Trust, _ response: Response) -> [KeyID: SigningKey] {
        var keys = installation.authorityKeys
        if case .keys(let more) = trust { keys.merge(more(response)) { first, _ in first } }
        return keys
    }
}

extension Installation {
    /// The authority's answer key by its id; none where it is not known.
    var authorityKeys: [KeyID: SigningKey] {
        guard let authorityKey, let id = KeyID(MessageSignatures.authorityKeyID) else { return [:] }
        return [id: authorityKey]
    }
}
