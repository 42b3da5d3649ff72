import CountersignClient
import CountersignTrust
import CountersignWire

/// How the client stands, for who shows it, and for requests that ask whether they may go.
final class Standings: Sendable {
    private struct State {
        /// By what the vault says.
        var session = ClientState.unavailable
        /// Over it, where the authority wants another version.
        var update: Update = .notRequired
        /// Whose session the authority has ended: his requests may wait for him.
        var endedAccount: String?

        var shown: ClientState {
            if case .required(let url) = update { return .updateRequired(url: url) }
            return session
        }
    }

    private enum Update {
        case notRequired
        case required(url: String?)
    }

    private let state = Guarded(State())
    private let shown = Broadcast<ClientState>(.latest, latest: .unavailable)
    private let events: Broadcast<ClientEvent>

    init(_ events: Broadcast<ClientEvent>) { self.events = events }

    var current: ClientState { state.with { $0.shown } }

    func stream() -> AsyncStream<ClientState> { shown.stream() }

    func finish() { shown.finish() }

    /// The state machine's word.
    func take(_ standing: Standing) {
        change { state in
            let before = state.session
            state.session = ClientState(standing)
            switch (before, state.session) {
            case (.active(let account), .signedOut(.ended(let end))) where end.how != .signedOut:
                state.endedAccount = account.name
            case (_, .signedOut), (_, .active): state.endedAccount = nil
            case (_, .locked), (_, .unavailable), (_, .updateRequired): break
            }
        }
        if standing == .locked(.presence) { events.tell(.presenceNeeded) }
    }

    /// The authority's word about the version.
    func requireUpdate(_ url: String?) { change { $0.update = .required(url: url) } }

    func continueDespiteUpdate() { change { $0.update = .notRequired } }

    /// What keeps a request from going out; nil where nothing does, or where only the vault can tell: another process may have
    /// signed somebody in.
    func obstacle(for caller: APIRequest.Caller) -> Obstacle? {
        state.with { state in
            switch (state.shown, caller) {
            case (.updateRequired(let url), _): .update(url: url)
            case (.signedOut(.ended), .account): state.endedAccount.map { .endedSession(of: $0) }
            default: nil
            }
        }
    }

    enum Obstacle: Equatable {
        case update(url: String?)
        /// Until this account signs in again.
        case endedSession(of: String)
    }

    /// Told under the lock, so that listeners hear changes in the order in which they happened.
    private func change(_ body: (inout State) -> Void) {
        state.with { state in
            let before = state.shown
            body(&state)
            guard state.shown != before else { return }
            shown.tell(state.shown)
            events.tell(.state(ClientEvent.State(state.shown)))
        }
    }
}

extension ClientState {
    init(_ standing: Standing) {
        self =
            switch standing {
            case .signedOut(nil): .signedOut(.nobody)
            case .signedOut(let ending?): .signedOut(.ended(SessionEnd(ending)))
            case .active(let account, let session):
                .active(Account(name: account.description, session: session.description))
            case .locked: .locked
            case .unavailable: .unavailable
            }
    }
}

extension ClientEvent.State {
    init(_ state: ClientState) {
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
