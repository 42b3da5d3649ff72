import CountersignClient
import CountersignTrust
import CountersignWire

/// The client's state, for display and for requests that ask whether they may be sent.
final class ClientStateMachine: Sendable {
    private struct State {
        /// The status from the vault.
        var status: SessionStatus?
        /// Covers the status if the authority requires another version.
        var update: Update = .notRequired
        /// The account whose session the authority has ended: its requests may wait for its next login.
        var endedAccount: String?
        /// The signed-in account if its device key is bound to presence. It stays known while the vault
        /// cannot be read.
        var boundAccount: String?
        /// Also open if the options ask for no gate.
        var gate: Gate
        var loginsUnderWay = 0

        var session: CountersignState { status.map(CountersignState.init) ?? .unavailable }

        /// The account that has yet to pass the gate.
        var gatedAccount: String? { gate == .closed ? boundAccount : nil }

        var isPresenceNeeded: Bool {
            switch status {
            case .locked(.presence): true
            case .active: gatedAccount != nil
            case .signedOut, .locked(.vault), .unavailable, nil: false
            }
        }

        var shown: CountersignState {
            if case .required(let url) = update { return .updateRequired(url: url) }
            return isPresenceNeeded ? .locked : session
        }
    }

    /// Whether a user has confirmed their presence since the process began.
    enum Gate { case open, closed }

    private enum Update {
        case notRequired
        case required(url: String?)
    }

    private let state: Locked<State>
    private let report: StatePublisher

    init(_ report: StatePublisher, gate: Gate) {
        self.report = report
        state = Locked(State(gate: gate))
    }

    /// Whether an account is signed in and served, whether or not its user has passed the gate.
    var isSignedIn: Bool {
        state.with { state in
            if case (.notRequired, .active) = (state.update, state.session) { true } else { false }
        }
    }

    /// Takes the new status from the client module.
    func update(to status: SessionStatus) {
        change { state in
            let (before, known) = (state.session, state.status)
            state.status = status
            switch status {
            case .active(let account, let id, let key):
                // A login counts as presence.
                if state.loginsUnderWay > 0, known?.session != id { state.gate = .open }
                state.boundAccount = key == .boundToPresence ? account.description : nil
            case .signedOut: state.boundAccount = nil
            case .locked, .unavailable: break
            }
            switch (before, state.session) {
            case (.active(let account), .signedOut(.ended(let end))) where end.how != .signedOut:
                state.endedAccount = account.name
            case (_, .signedOut), (_, .active): state.endedAccount = nil
            case (_, .locked), (_, .unavailable), (_, .updateRequired): break
            }
        }
    }

    /// Opens the gate after a user has confirmed their presence.
    func openGate() { change { $0.gate = .open } }

    /// The vault's state must be known before: a session that appears meanwhile counts as the login's.
    func beginLogin() { state.with { $0.loginsUnderWay += 1 } }

    func endLogin() { state.with { $0.loginsUnderWay -= 1 } }

    /// The authority requires another version.
    func requireUpdate(_ url: String?) { change { $0.update = .required(url: url) } }

    func continueDespiteUpdate() { change { $0.update = .notRequired } }

    /// What prevents a request from being sent; nil if nothing does, or if only the vault can tell: another
    /// process may have signed in.
    func obstacle(for caller: APIRequest.Caller) -> Obstacle? {
        state.with { state in
            switch (state.update, state.session, caller) {
            case (.required(let url), _, _): .update(url: url)
            case (_, .signedOut(.ended(let end)), .account):
                state.endedAccount.map { .endedSession(of: $0, end) }
            case (_, _, .account): state.gatedAccount.map { .gate(of: $0) }
            case (_, _, .app): nil
            }
        }
    }

    enum Obstacle: Equatable {
        case update(url: String?)
        /// Until this account signs in again.
        case endedSession(of: String, SessionEnd)
        /// Until the user of this account's device confirms their presence.
        case gate(of: String)
    }

    /// Publishes under the lock, so that listeners receive changes in the order in which they happened.
    private func change(_ body: (inout State) -> Void) {
        state.with { state in
            let before = state.shown
            body(&state)
            report.publish(
                state.shown == before ? nil : state.shown, isPresenceNeeded: state.isPresenceNeeded)
        }
    }
}

extension SessionStatus {
    fileprivate var session: SessionID? {
        if case .active(_, let id, _) = self { id } else { nil }
    }
}

extension CountersignEvent.State {
    init(_ state: CountersignState) {
        self =
            switch state {
            case .signedOut: .signedOut
            case .active: .active
            case .locked: .locked
            case .unavailable: .unavailable
            case .updateRequired: .updateRequired
            }
    }
}

extension ClientCore {
    /// Returns once a request may go out; throws where it may not.
    func admit(
        _ caller: APIRequest.Caller, owner: CallOwner, occasion: CallOptions.Occasion = .single
    ) async throws(CountersignError) {
        guard let obstacle = stateMachine.obstacle(for: caller) else { return }
        try obstacle.check(occasion)
        switch (obstacle, options.whenPaused) {
        case (.endedSession, .fail): return
        case (.update, .fail), (.gate, .fail): throw obstacle.error
        case (_, .wait):
            try await wait(
                caller, owner: caller == .account ? owner : CallOwner(), occasion: occasion, behind: obstacle)
        }
    }

    /// For an operation that is not a request of the app and does not wait.
    func passGate() async throws(CountersignError) {
        try await open()
        if let obstacle = stateMachine.obstacle(for: .account), case .gate = obstacle { throw obstacle.error }
    }

    /// A request belongs to the account that was signed in when it was made, and is sent in no other name.
    private func wait(
        _ caller: APIRequest.Caller, owner: CallOwner, occasion: CallOptions.Occasion,
        behind first: ClientStateMachine.Obstacle
    ) async throws(CountersignError) {
        var awaited = first.owner
        owner.resolve(awaited)
        for await state in context.report.states {
            if let owner = owner.account, case .active(let account) = state, account.name != owner.description
            {
                throw .accountChanged
            }
            guard let obstacle = stateMachine.obstacle(for: caller) else {
                guard awaited == nil || state.isActive else { continue }
                return
            }
            try obstacle.check(occasion)
            awaited = awaited ?? obstacle.owner
            owner.resolve(awaited)
        }
        throw .cancelled
    }
}

extension ClientStateMachine.Obstacle {
    /// The account of the request if only that account can clear the obstacle.
    fileprivate var owner: AccountName? {
        switch self {
        case .update: nil
        // Always a name: it was one at the login.
        case .endedSession(of: let account, _), .gate(of: let account): try? AccountName(normalizing: account)
        }
    }

    fileprivate var error: CountersignError {
        switch self {
        case .update(let url): .updateRequired(url: url)
        case .endedSession(of: _, let end): .signedOut(end)
        case .gate: .presenceNeeded
        }
    }

    /// Polling stops when the session is over or the version is not served, whichever request found out.
    fileprivate func check(_ occasion: CallOptions.Occasion) throws(CountersignError) {
        switch (occasion, self) {
        case (.single, _), (.round, .gate): return
        case (.round, .update), (.round, .endedSession): throw error
        }
    }
}

extension CountersignState {
    fileprivate var isActive: Bool {
        if case .active = self { true } else { false }
    }
}
