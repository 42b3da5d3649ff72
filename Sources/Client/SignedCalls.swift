import CountersignSchemes
import CountersignSeal
import CountersignWire

/// Requests in the name of who is signed in. A token that ran out is renewed, a clock that is wrong is corrected, and the request
/// sent again, without anybody's noticing; what may have been done already is not sent again unless the server can tell.
/// Source: docs/protocol.md, "Sessions" and "Doing once".
package struct SignedCalls: Sendable {
    private let installation: Installation
    private let surroundings: Surroundings
    private let refresh: Refresh

    /// `refreshingOver` is the way of refreshes, where that is another than the requests'.
    package init(
        _ installation: Installation, _ surroundings: Surroundings, refreshingOver other: (any Transport)? = nil
    ) {
        self.installation = installation
        self.surroundings = surroundings
        var refreshing = surroundings
        if let other { refreshing.transport = other }
        refresh = Refresh(installation: installation, surroundings: refreshing)
    }

    /// Throws ``ClientProblem/sessionEnded(_:)`` once the authority says so, and ``ClientProblem/accountChanged`` where it would go
    /// out as another's than `owner`'s. Other refusals are answers.
    nonisolated(nonsending) package func send(
        _ draft: Draft, as owner: Owner = .whoeverIsSignedIn, ifLost: LostAnswer = .askAgain,
        body: BodyUse = .repeatable
    ) async throws(ClientProblem) -> Answered {
        var draft = draft
        giveKey(to: &draft)
        var chances = Chances(ifLost)
        let owner = try await prepare(owner, for: body)
        while true {
            let (state, login) = try signedIn()
            try owner.check(login)
            let answered: Answered
            do {
                answered = try await sendOnce(draft, login, state, chances.proof(surroundings))
            } catch {
                guard case .outcomeUnknown = error, !body.isUsedUp, chances.take(.resending) else { throw error }
                continue
            }
            guard let notice = answered.notice else { return answered }
            let lesson = Lesson(notice, signedBy: answered.signer, of: login, installation)
            guard try await learn(lesson, notice, login, &chances) == .sendAgain else { return answered }
            guard !body.isUsedUp else { throw .bodyUsedUp }
        }
    }

    /// The request as it would be sent now. Throws ``ClientProblem/accountChanged`` where that is as another's than `owner`'s.
    package func signed(_ draft: Draft, as owner: Owner = .whoeverIsSignedIn) throws(ClientProblem) -> Draft {
        var draft = draft
        giveKey(to: &draft)
        let (state, login) = try signedIn()
        try owner.check(login)
        let signer = try credentials(for: &draft, login)
        return try listener(state, Chances(.stop).proof(surroundings)).signed(
            draft, as: signer, at: surroundings.now())
    }

    /// Another token, whether the one there is has run out or not. For tools: requests see to it by themselves.
    nonisolated(nonsending) package func renew() async throws(ClientProblem) {
        try await refresh(.ranOut(try signedIn().login.token))
    }

    private enum Next { case sendAgain, giveUp }

    /// Does what a refusal asks for, each thing once or twice for a request: what is not mended then is something else.
    nonisolated(nonsending) private func learn(
        _ lesson: Lesson, _ notice: Notice, _ login: SignedIn, _ chances: inout Chances
    ) async throws(ClientProblem) -> Next {
        switch lesson {
        case .none: return .giveUp
        case .isOver:
            let now = try surroundings.keeper.forget(usedWith: login.token, Ending(notice))
            guard now == .isAnother else { throw .sessionEnded(notice) }
            return chances.take(.replacing) ? .sendAgain : .giveUp
        case .ranOut:
            // The first one may find what another process has left, long enough ago to have run out, too.
            guard chances.take(.refreshing) || chances.take(.refreshingAgain) else { return .giveUp }
            try await refresh(.ranOut(login.token))
            return .sendAgain
        case .time(let told):
            guard chances.take(.clock) else { return .giveUp }
            surroundings.learn(told)
            return .sendAgain
        case .isNotKnown(let session):
            // The second one is of what the first one has left.
            guard chances.take(.doubting) || chances.take(.doubtingAgain) else { return .giveUp }
            return try await askAbout(session)
        case .wantsDevice: return chances.take(.cosigning) ? .sendAgain : .giveUp
        }
    }

    /// Asks the authority for something to go on with. What it refuses there concerns this request no more than the refusal that is
    /// shown.
    nonisolated(nonsending) private func askAbout(_ session: DeviceSession) async throws(ClientProblem) -> Next {
        do {
            try await refresh(.isNotKnown(session.token, session.latestIs))
            return .sendAgain
        } catch {
            guard case .refused = error else { throw error }
            return .giveUp
        }
    }

    /// Whose the request is. A body that can be sent once only is not spent on a token that is known to have run out.
    nonisolated(nonsending) private func prepare(
        _ owner: Owner, for body: BodyUse
    ) async throws(ClientProblem) -> Owner {
        let login = try signedIn().login
        try owner.check(login)
        if case .once = body, login.expires <= (try surroundings.now()) { try await refresh(.ranOut(login.token)) }
        return owner.settled(by: login)
    }

    /// Where nobody is known to be signed in, another process may have seen to it.
    private func signedIn() throws(ClientProblem) -> (state: ClientState, login: SignedIn) {
        let known = try surroundings.keeper.state()
        if let login = known.login { return (known, login) }
        let state = try surroundings.keeper.look()
        guard let login = state.login else { throw .notSignedIn }
        return (state, login)
    }

    private func credentials(for draft: inout Draft, _ login: SignedIn) throws(ClientProblem) -> Credentials {
        switch login.session {
        case .device(let session):
            return session.credentials(of: session.latest, release: installation.release.keyID)
        case .bearer(let session):
            _ = try installation.trustForBearerSecrets()
            draft.fields.removeAll { $0.name.lowercased() == "authorization" }
            draft.fields.append(session.authorization)
            return installation.release
        }
    }

    private func listener(_ state: ClientState, _ proof: Chances.Proof) throws(ClientProblem) -> Listener {
        var listener = Listener(surroundings: surroundings)
        if proof == .ofDevice, case .device? = state.login?.session, let keys = state.keys {
            listener.cosigner = try surroundings.signer(keys)
        }
        return listener
    }

    nonisolated(nonsending) private func sendOnce(
        _ draft: Draft, _ login: SignedIn, _ state: ClientState, _ proof: Chances.Proof
    ) async throws(ClientProblem) -> Answered {
        var draft = draft
        let signer = try credentials(for: &draft, login)
        var keys = installation.authorityKeys
        if case .device(let session) = login.session { keys.merge(session.keys()) { first, _ in first } }
        let time = try surroundings.now()
        let heard = try await listener(state, proof).ask(draft, as: signer, at: time) { _ in keys }
        var answered = Answered(heard)
        if case .unsigned = heard {
            answered.notice?.isGenuine = installation.connectionVouches && installation.isOwn(draft)
        }
        if let keyID = answered.signer ?? answered.toBeChecked?.signer { noteConfirmed(keyID, login) }
        surroundings.confirm(time, by: heard)
        if answered.notice == nil { surroundings.keeper.announceKnown() }
        return answered
    }

    /// An answer under the successor's key: the server has it, and what came before may go. Should the vault fail now, the next
    /// answer says the same; this one is not to be lost for it.
    private func noteConfirmed(_ keyID: KeyID, _ login: SignedIn) {
        guard case .device(let session) = login.session, let successor = session.successor,
            keyID == KeyID(session.token(of: successor))
        else { return }
        try? surroundings.keeper.change { state in
            guard case .device(var now)? = state.login?.session, now.id == session.id,
                now.successor?.number == successor.number
            else { return .keep(()) }
            now.confirm(successor.number)
            state.login?.session = .device(now)
            return .write(())
        }
    }

    /// What changes something bears a key by which a second copy is told from a second wish, the same through all copies.
    private func giveKey(to draft: inout Draft) {
        guard !["GET", "HEAD"].contains(draft.method) else { return }
        guard !draft.fields.contains(where: { $0.name.lowercased() == "idempotency-key" }) else { return }
        draft.set("Idempotency-Key", Base64.encode(surroundings.random.bytes(16).span, .url))
    }
}

/// What may still be tried for a request.
private struct Chances {
    enum Mend: CaseIterable {
        case resending, refreshing, refreshingAgain, clock, doubting, doubtingAgain, replacing, cosigning
    }

    /// What a request bears. A device's signature costs a look at its key, so it is made where the server asks for it, and where
    /// somebody is present for it.
    enum Proof { case ofSession, ofDevice }

    private var left = Set(Mend.allCases)

    init(_ ifLost: SignedCalls.LostAnswer) {
        if ifLost == .stop { left.remove(.resending) }
    }

    func proof(_ surroundings: Surroundings) -> Proof {
        left.contains(.cosigning) && surroundings.signer == nil ? .ofSession : .ofDevice
    }

    mutating func take(_ mend: Mend) -> Bool { left.remove(mend) != nil }
}
