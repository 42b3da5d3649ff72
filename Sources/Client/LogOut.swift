import CountersignWire

/// Ends the session, at the authority and here. Where the authority cannot be reached, the session stays: one that only this device
/// has forgotten would live on. Source: docs/protocol.md, "Sessions".
package struct LogOut: Sendable {
    private let installation: Installation
    private let surroundings: Surroundings

    package init(_ installation: Installation, _ surroundings: Surroundings) {
        self.installation = installation
        self.surroundings = surroundings
    }

    package enum Outcome: Sendable {
        /// It is not kept here any more.
        case signedOut
        /// It was over before.
        case hadEnded(Notice)
    }

    nonisolated(nonsending) package func callAsFunction() async throws(ClientProblem) -> Outcome {
        guard let login = try surroundings.keeper.look().login else { throw .notSignedIn }
        let routes = OwnRoutes(installation: installation, surroundings: surroundings)
        do {
            _ = try await routes.ask("POST", "/logout", [:], as: .session(login.id))
        } catch {
            switch error {
            case .sessionEnded(let notice): return .hadEnded(notice)
            // A login took its place meanwhile, and is not what was to end.
            case .accountChanged: return .signedOut
            default: throw error
            }
        }
        try surroundings.keeper.forget(login.id, .signedOut(at: try surroundings.now()))
        return .signedOut
    }

    /// Here only, whatever becomes of it there: for a server that is gone for good.
    package func forgetHere() throws(ClientProblem) {
        guard let login = try surroundings.keeper.look().login else { throw .notSignedIn }
        try surroundings.keeper.forget(login.id, .signedOut(at: try surroundings.now()))
    }
}
