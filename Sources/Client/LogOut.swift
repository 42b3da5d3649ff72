import CountersignWire

/// Ends the session at the authority and on this device. If the authority cannot be reached, the session
/// stays: one that only this device has forgotten would live on. Source: docs/protocol.md, "Sessions".
package struct LogOut: Sendable {
    private let installation: Installation
    private let environment: ClientEnvironment

    package init(_ installation: Installation, environment: ClientEnvironment) {
        self.installation = installation
        self.environment = environment
    }

    package enum Outcome: Sendable {
        /// It is not stored here any more.
        case signedOut
        /// It had ended before.
        case hadEnded(RefusalNotice)
    }

    package func callAsFunction() async throws(ClientOperationError) -> Outcome {
        guard let login = try environment.keeper.readVault().login else { throw .notSignedIn }
        let routes = AuthenticatedRoutes(installation: installation, environment: environment)
        do {
            // A lost copy may have ended the session. The app must still learn that the server cannot be
            // reached now: it then forgets the session on the device.
            _ = try await routes.send(
                "POST", path: "/logout", body: [:], as: .session(login.id), ifLost: .askAgainWithoutHarm)
        } catch {
            switch error {
            case .sessionEnded(let notice): return .hadEnded(notice)
            // A login replaced the session meanwhile; the new session is not to be ended.
            case .accountChanged: return .signedOut
            default: throw error
            }
        }
        try environment.keeper.forget(login.id, ending: .signedOut(at: try environment.now()))
        return .signedOut
    }

    /// Removes the session from this device only, for a server that is gone for good.
    package func forgetHere() throws(ClientOperationError) {
        guard let login = try environment.keeper.readVault().login else { throw .notSignedIn }
        try environment.keeper.forget(login.id, ending: .signedOut(at: try environment.now()))
    }
}
