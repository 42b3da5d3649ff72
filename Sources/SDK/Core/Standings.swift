import CountersignClient
import CountersignTrust
import CountersignWire

/// How the client stands, for who shows it, and for requests that ask whether they may go.
final class Standings: Sendable {
    private struct State {
        /// What the vault says.
        var standing: Standing?
        /// Over it, where the authority wants another version.
        var update: Update = .notRequired
        /// Whose session the authority has ended: his requests may wait for him.
        var endedAccount: String?
        /// Who is signed in, where his device's key is bound to presence. It outlasts a vault that cannot be read for a while.
        var boundAccount: String?
        /// Open, too, where there is none.
        var gate: Gate
        var loginsUnderWay = 0

        var session: CountersignState { standing.map(CountersignState.init) ?? .unavailable }

        /// Who has to come through the gate.
        var gatedAccount: String? { gate == .closed ? boundAccount : nil }

        var isPresenceNeeded: Bool {
            switch standing {
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

    /// Whether somebody has shown that he is there since the process began.
    enum Gate { case open, closed }

    private enum Update {
        case notRequired
        case required(url: String?)
    }

    private let state: Locked<State>
    private let shown = Broadcast<CountersignState>(.latest, latest: .unavailable)
    private let events: Broadcast<CountersignEvent>

    init(_ events: Broadcast<CountersignEvent>, gate: Gate) {
        self.events = events
        state = Locked(State(gate: gate))
    }

    var current: CountersignState { state.with { $0.shown } }

    /// And served, whether he has come through the gate or not.
    var isSignedIn: Bool {
        state.with { state in
            if case (.notRequired, .active) = (state.update, state.session) { true } else { false }
        }
    }

    func stream() -> AsyncStream<CountersignState> { shown.stream() }

    func finish() { shown.finish() }

    /// The state machine's word.
    func take(_ standing: Standing) {
        change { state in
            let (before, known) = (state.session, state.standing)
            state.standing = standing
            switch standing {
            case .active(let account, let id, let key):
                // Who has just signed in has shown who he is.
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

    /// Somebody has shown that he is there.
    func openGate() { change { $0.gate = .open } }

    /// What the vault held must be known before: a session that appears meanwhile is taken for the login's.
    func beginLogin() { state.with { $0.loginsUnderWay += 1 } }

    func endLogin() { state.with { $0.loginsUnderWay -= 1 } }

    /// The authority's word about the version.
    func requireUpdate(_ url: String?) { change { $0.update = .required(url: url) } }

    func continueDespiteUpdate() { change { $0.update = .notRequired } }

    /// What keeps a request from going out; nil where nothing does, or where only the vault can tell: another process may have
    /// signed somebody in.
    func obstacle(for caller: APIRequest.Caller) -> Obstacle? {
        state.with { state in
            switch (state.update, state.session, caller) {
            case (.required(let url), _, _): .update(url: url)
            case (_, .signedOut(.ended(let end)), .account): state.endedAccount.map { .endedSession(of: $0, end) }
            case (_, _, .account): state.gatedAccount.map { .gate(of: $0) }
            case (_, _, .app): nil
            }
        }
    }

    enum Obstacle: Equatable {
        case update(url: String?)
        /// Until this account signs in again.
        case endedSession(of: String, SessionEnd)
        /// Until whoever uses this account's device shows that he is there.
        case gate(of: String)
    }

    /// Told under the lock, so that listeners hear changes in the order in which they happened.
    private func change(_ body: (inout State) -> Void) {
        state.with { state in
            let (before, wasNeeded) = (state.shown, state.isPresenceNeeded)
            body(&state)
            if state.isPresenceNeeded, !wasNeeded { events.tell(.presenceNeeded) }
            guard state.shown != before else { return }
            shown.tell(state.shown)
            events.tell(.state(CountersignEvent.State(state.shown)))
        }
    }
}

extension Standing {
    fileprivate var session: SessionID? {
        if case .active(_, let id, _) = self { id } else { nil }
    }
}

extension CountersignState {
    init(_ standing: Standing) {
        self =
            switch standing {
            case .signedOut(nil): .signedOut(.nobody)
            case .signedOut(let ending?): .signedOut(.ended(SessionEnd(ending)))
            case .active(let account, let session, _):
                .active(CountersignAccount(name: account.description, session: session.description))
            case .locked: .locked
            case .unavailable: .unavailable
            }
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
