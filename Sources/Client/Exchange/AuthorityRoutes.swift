import CountersignSchemes
import CountersignSeal
import CountersignWire

/// Calls of the authority's own routes, signed by the release.
struct AuthorityRoutes: Sendable {
    let installation: Installation
    let surroundings: Surroundings

    private var listener: Listener { Listener(surroundings: surroundings) }

    /// Whose word it takes that an answer is the authority's.
    enum Trust {
        /// The authority's key. Where it is not known, nothing is genuine.
        case authority
        /// The same where it is known; else the answer proves itself by what it is used for, and may be used unproved.
        case authorityIfKnown
        /// Its key, or one that the answer's own content names and only the authority can have.
        case keys((Response) -> [KeyID: SigningKey])
    }

    /// A success, for the route's reader. A refusal that says `stale` and the authority's time is answered by asking once more
    /// with that time; `body` makes what is sent anew, since a proof in it may hold the time.
    nonisolated(nonsending) func post(
        _ path: String, trust: Trust, _ body: (_ time: Int64) throws(ClientProblem) -> JSONValue
    ) async throws(ClientProblem) -> Answered {
        let kept = KeptState(vault: surroundings.vault)
        var offset = try kept.read().clockOffset
        for attempt in 0... {
            let time = surroundings.time.now + offset
            let draft = installation.draft("POST", path, try body(time))
            let heard = try await listener.ask(draft, as: installation.release, at: time) { response in
                keys(for: trust, response)
            }
            switch heard {
            case .genuine(let answer):
                guard let notice = answer.notice else { return Answered(response: answer.response, isGenuine: true) }
                if attempt == 0, let learnt = ServerClock.offset(notice, of: answer, surroundings.time) {
                    offset = learnt
                    try await kept.change { $0.clockOffset = learnt }
                    continue
                }
                throw RefusedByAuthority.problem(notice, path)
            case .unsigned(let response, let why):
                if response.status >= 400 { throw .refused(Notice(response)) }
                guard case .authorityIfKnown = trust, installation.authorityKey == nil else {
                    throw .notGenuine("\(path): \(why)")
                }
                return Answered(response: response, isGenuine: false)
            }
        }
        throw .notUnderstood("\(path): no answer at all")
    }

    /// An answer to be read.
    struct Answered {
        let response: Response
        let isGenuine: Bool
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

/// What a genuine refusal of one of the authority's routes means.
enum RefusedByAuthority {
    static func problem(_ notice: Notice, _ path: String) -> ClientProblem {
        notice.code == Refusal.Code.wrongCredentials.rawValue ? .wrongCredentials : .refused(notice)
    }
}
