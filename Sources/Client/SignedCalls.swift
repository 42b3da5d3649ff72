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
    private var kept: KeptState { KeptState(vault: surroundings.vault) }

    /// `refreshingWith` is the way of refreshes, where that is another than the requests'.
    package init(
        _ installation: Installation, _ surroundings: Surroundings, refreshingWith other: Surroundings? = nil
    ) {
        self.installation = installation
        self.surroundings = surroundings
        refresh = Refresh(installation: installation, surroundings: other ?? surroundings)
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

    /// Throws ``ClientProblem/sessionEnded(_:)`` once the authority says so. Other refusals are answers.
    nonisolated(nonsending) package func send(
        _ draft: Draft, ifLost: LostAnswer = .askAgain
    ) async throws(ClientProblem) -> Answered {
        var draft = draft
        giveKey(to: &draft)
        var chances = Chances()
        if ifLost == .stop { _ = chances.take(.resending) }
        while true {
            let state = try kept.read()
            guard let login = state.login else { throw .notSignedIn }
            let answered: Answered
            do {
                answered = try await sendOnce(draft, login, state, chances.proof)
            } catch {
                guard case .outcomeUnknown = error, chances.take(.resending) else { throw error }
                continue
            }
            guard let notice = answered.notice, notice.isGenuine else { return answered }
            if notice.endsSession {
                try await kept.forget(login.id)
                throw .sessionEnded(notice)
            }
            guard try await canMend(notice, login, &chances) else { return answered }
        }
    }

    /// Whether something was changed that makes another try worth it.
    nonisolated(nonsending) private func canMend(
        _ notice: Notice, _ login: SignedIn, _ chances: inout Chances
    ) async throws(ClientProblem) -> Bool {
        switch Refusal.Code(rawValue: notice.code) {
        case .tokenExpired:
            guard chances.take(.refreshing) else { return false }
            try await refresh(insteadOf: Refresh.Token(login))
            return true
        case .stale:
            guard let offset = notice.clockOffset, chances.take(.clock) else { return false }
            try await kept.change { $0.clockOffset = offset }
            return true
        case .unknownKey, .badSignature:
            // The server offered this epoch and does not know it: it lost it, or somebody in between changed the request. The same
            // attempt is answered alike in either case.
            guard case .device(let session) = login.session, session.successor != nil, chances.take(.retreating) else {
                return false
            }
            try await retreat(from: session)
            return true
        case .deviceUnsigned:
            guard case .device = login.session else { return false }
            return chances.take(.cosigning)
        default: return false
        }
    }

    nonisolated(nonsending) private func retreat(from session: DeviceSession) async throws(ClientProblem) {
        try await kept.change { state in
            guard case .device(var now)? = state.login?.session, now.token == session.token else { return }
            now.retreat()
            state.login?.session = .device(now)
        }
        try await refresh(insteadOf: .session(session.token(of: session.current)))
    }

    /// The request as it would be sent now.
    package func signed(_ draft: Draft) throws(ClientProblem) -> Draft {
        var draft = draft
        giveKey(to: &draft)
        let state = try kept.read()
        guard let login = state.login else { throw .notSignedIn }
        let signer = signer(of: &draft, login)
        return try Listener(surroundings: surroundings).signed(
            draft, as: signer, at: surroundings.time.now + state.clockOffset)
    }

    private func signer(of draft: inout Draft, _ login: SignedIn) -> Credentials {
        switch login.session {
        case .device(let session):
            return session.signer(of: session.latest, release: installation.release.keyID)
        case .bearer(let session):
            draft.fields.removeAll { $0.name.lowercased() == "authorization" }
            draft.fields.append(session.authorization)
            return installation.release
        }
    }

    nonisolated(nonsending) private func sendOnce(
        _ draft: Draft, _ login: SignedIn, _ state: ClientState, _ proof: Chances.Proof
    ) async throws(ClientProblem) -> Answered {
        var draft = draft
        let signer = signer(of: &draft, login)
        var keys = installation.authorityKeys
        if case .device(let session) = login.session { keys.merge(session.keys()) { first, _ in first } }
        let time = surroundings.time.now + state.clockOffset
        let listener = Listener(surroundings: surroundings, cosigner: proof == .ofDevice ? state.keys : nil)
        let heard = try await listener.ask(draft, as: signer, at: time) { _ in keys }
        switch heard {
        case .unsigned(let response, let why):
            let notice = response.status >= 400 ? Notice(response) : nil
            return Answered(response: response, signer: nil, doubt: why, notice: notice)
        case .genuine(let answer):
            await noteConfirmed(answer.keyID, login)
            return Answered(
                response: answer.response, signer: answer.keyID, doubt: "", notice: answer.notice(surroundings.time))
        }
    }

    /// An answer under the successor's key: the server has it, and what came before may go. Should the vault fail now, the next
    /// answer says the same; this one is not to be lost for it.
    nonisolated(nonsending) private func noteConfirmed(_ keyID: KeyID, _ login: SignedIn) async {
        guard case .device(let session) = login.session, let successor = session.successor,
            keyID == KeyID(session.token(of: successor))
        else { return }
        try? await kept.change { state in
            guard case .device(var now)? = state.login?.session, now.id == session.id else { return }
            now.confirm(successor.number)
            state.login?.session = .device(now)
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
    enum Mend { case resending, refreshing, clock, retreating, cosigning }

    /// What a request bears. A device's signature costs a look at its key, so it is made where the server asks for it.
    enum Proof { case ofSession, ofDevice }

    private var left: Set<Mend> = [.resending, .refreshing, .clock, .retreating, .cosigning]

    var proof: Proof { left.contains(.cosigning) ? .ofSession : .ofDevice }

    mutating func take(_ mend: Mend) -> Bool { left.remove(mend) != nil }
}
