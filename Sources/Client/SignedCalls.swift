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

    /// An answer, and whose key it is signed with.
    package struct Answered: Sendable {
        package let response: Response
        /// Nil for an answer that nobody is known to have given: a backend's, which passes through unsigned.
        package let signer: KeyID?
        /// Why there is no signer.
        package let doubt: String

        /// A refusal; genuine where the authority is known to have said it.
        package internal(set) var notice: Notice?
    }

    /// What follows where no answer comes.
    package enum LostAnswer: Sendable {
        /// It is sent once more: what it bears tells a second copy from a second wish.
        case askAgain
        /// The outcome is unknown. For what a second copy would be refused for, though the first was taken.
        case stop
    }

    /// Throws ``ClientProblem/sessionEnded(_:)`` once the authority says so. Other refusals are answers. A request is in the name of
    /// who is signed in when it is made, and is sent in no other.
    nonisolated(nonsending) package func send(
        _ draft: Draft, ifLost: LostAnswer = .askAgain
    ) async throws(ClientProblem) -> Answered {
        var draft = draft
        giveKey(to: &draft)
        var chances = Chances()
        if ifLost == .stop { _ = chances.take(.resending) }
        let account = try signedIn().login.account
        while true {
            let (state, login) = try signedIn()
            guard login.account == account else { throw .accountChanged }
            let answered: Answered
            do {
                answered = try await sendOnce(draft, login, state, chances.proof)
            } catch {
                guard case .outcomeUnknown = error, chances.take(.resending) else { throw error }
                continue
            }
            guard let notice = answered.notice else { return answered }
            switch Lesson(notice, signedBy: answered.signer, of: login, installation) {
            case .none: return answered
            case .isOver:
                let now = try surroundings.keeper.forget(usedWith: login.token, Ending(notice))
                guard now == .isAnother else { throw .sessionEnded(notice) }
                guard chances.take(.replacing) else { return answered }
            case .ranOut:
                guard chances.take(.refreshing) else { return answered }
                try await refresh(.ranOut(login.token))
            case .time(let told):
                guard chances.take(.clock) else { return answered }
                surroundings.learn(told)
            case .isNotKnown(let session):
                // The second one is of what the first one has left.
                guard chances.take(.doubting) || chances.take(.doubtingAgain), try await isKnownBetter(than: session)
                else { return answered }
            case .wantsDevice:
                guard chances.take(.cosigning) else { return answered }
            }
        }
    }

    /// Whether the authority, asked, had something to go on with. What it refuses there concerns this request no more than the
    /// refusal that is shown.
    nonisolated(nonsending) private func isKnownBetter(than session: DeviceSession) async throws(ClientProblem) -> Bool
    {
        do {
            try await refresh(.isNotKnown(session.token, session.latestIs))
            return true
        } catch {
            guard case .refused = error else { throw error }
            return false
        }
    }

    /// The request as it would be sent now.
    package func signed(_ draft: Draft) throws(ClientProblem) -> Draft {
        var draft = draft
        giveKey(to: &draft)
        let signer = try signer(of: &draft, signedIn().login)
        return try Listener(surroundings: surroundings).signed(draft, as: signer, at: surroundings.now())
    }

    /// Where nobody is known to be signed in, another process may have seen to it.
    private func signedIn() throws(ClientProblem) -> (state: ClientState, login: SignedIn) {
        let known = try surroundings.keeper.state()
        if let login = known.login { return (known, login) }
        let state = try surroundings.keeper.look()
        guard let login = state.login else { throw .notSignedIn }
        return (state, login)
    }

    private func signer(of draft: inout Draft, _ login: SignedIn) throws(ClientProblem) -> Credentials {
        switch login.session {
        case .device(let session):
            return session.signer(of: session.latest, release: installation.release.keyID)
        case .bearer(let session):
            _ = try installation.trustForBearerSecrets()
            draft.fields.removeAll { $0.name.lowercased() == "authorization" }
            draft.fields.append(session.authorization)
            return installation.release
        }
    }

    nonisolated(nonsending) private func sendOnce(
        _ draft: Draft, _ login: SignedIn, _ state: ClientState, _ proof: Chances.Proof
    ) async throws(ClientProblem) -> Answered {
        var draft = draft
        let signer = try signer(of: &draft, login)
        var keys = installation.authorityKeys
        if case .device(let session) = login.session { keys.merge(session.keys()) { first, _ in first } }
        let time = try surroundings.now()
        let listener = Listener(surroundings: surroundings, cosigner: proof == .ofDevice ? state.keys : nil)
        let heard = try await listener.ask(draft, as: signer, at: time) { _ in keys }
        switch heard {
        case .unsigned(let response, let why):
            var notice = response.status >= 400 ? Notice(response) : nil
            notice?.isGenuine = installation.connectionVouches && installation.isOwn(draft)
            return Answered(response: response, signer: nil, doubt: why, notice: notice)
        case .genuine(let answer):
            surroundings.confirm(time, by: answer)
            noteConfirmed(answer.keyID, login)
            return Answered(
                response: answer.response, signer: answer.keyID, doubt: "", notice: answer.notice)
        }
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

/// Each mend is tried once for a request: what it does not mend then is something else.
private struct Chances {
    enum Mend: CaseIterable { case resending, refreshing, clock, doubting, doubtingAgain, replacing, cosigning }

    /// What a request bears. A device's signature costs a look at its key, so it is made where the server asks for it.
    enum Proof { case ofSession, ofDevice }

    private var left = Set(Mend.allCases)

    var proof: Proof { left.contains(.cosigning) ? .ofSession : .ofDevice }

    mutating func take(_ mend: Mend) -> Bool { left.remove(mend) != nil }
}
