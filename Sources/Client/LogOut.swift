import CountersignWire

/// Ends the session on this device at once, and at the authority now or later: a user who signs out offline
/// is signed out. What the authority must be told stays in the vault until it was. Source: docs/protocol.md,
/// "Sessions".
package struct LogOut: Sendable {
    private let installation: Installation
    private let environment: ClientEnvironment

    package init(_ installation: Installation, environment: ClientEnvironment) {
        self.installation = installation
        self.environment = environment
    }

    package enum Outcome: Sendable {
        /// The authority has ended it.
        case signedOut
        /// It had ended before.
        case hadEnded(RefusalNotice)
        /// It has ended here; the authority is told with a later request.
        case toldLater
    }

    /// Throws only if no session is stored, or if the vault cannot be written.
    package func callAsFunction() async throws(ClientOperationError) -> Outcome {
        guard let login = try environment.keeper.readVault().login else {
            let left = try environment.keeper.state().pendingLogOuts
            guard !left.isEmpty else { throw .notSignedIn }
            await PendingLogOuts(installation: installation, environment: environment).send()
            return try environment.keeper.state().pendingLogOuts.isEmpty ? .signedOut : .toldLater
        }
        let pending = try end(login)
        let logOuts = PendingLogOuts(installation: installation, environment: environment)
        guard let outcome = try? await logOuts.send(pending) else { return .toldLater }
        switch outcome {
        case .told: return .signedOut
        case .later: return .toldLater
        case .hadEnded(let notice):
            try? environment.keeper.change { state in
                guard state.login == nil, state.lastAccount == login.account else { return .keep(()) }
                state.ended = SessionEndRecord(notice)
                return .write(())
            }
            return .hadEnded(notice)
        }
    }

    /// Removes the session from this device only, for a server that is gone for good.
    package func forgetHere() throws(ClientOperationError) {
        guard let login = try environment.keeper.readVault().login else { throw .notSignedIn }
        let now = try environment.now()
        try environment.keeper.change { state in
            guard state.login?.id == login.id else { return .keep(()) }
            state.end(.signedOut(at: now))
            return .write(())
        }
    }

    /// Ends the session here and stores what the authority is to be told. Another process may have renewed
    /// the session meanwhile: the keys are those of the state that is changed. If a login has replaced it,
    /// the new session stays, and the authority is told of the old one all the same.
    private func end(_ login: ActiveLogin) throws(ClientOperationError) -> PendingLogOut {
        let now = try environment.now()
        return try environment.keeper.change { state in
            if let current = state.login, current.id == login.id {
                let pending = PendingLogOut(current)
                state.end(.signedOut(at: now))
                state.add(pending)
                return .write(pending)
            }
            if let known = state.pendingLogOuts.first(where: { $0.session == login.id }) {
                return .keep(known)
            }
            let pending = PendingLogOut(login)
            state.add(pending)
            return .write(pending)
        }
    }
}
