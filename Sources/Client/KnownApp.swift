import CountersignWire

/// How the app is called at the authority: OPAQUE's name for the server, and so a part of every proof.
///
/// Where nobody said it, the start's answer does. Whoever lies about it makes the login fail and gains nothing: the release is
/// bound as well, and the name that the registration was made for cannot be changed after.
struct KnownApp: Sendable {
    private let installation: Installation
    private let kept: KeptState

    init(_ installation: Installation, _ surroundings: Surroundings) {
        self.installation = installation
        kept = KeptState(vault: surroundings.vault)
    }

    /// The name to go by, kept once it is learnt.
    nonisolated(nonsending) func settle(_ answer: AnswerBody) async throws(ClientProblem) -> String {
        if let app = installation.app { return app }
        guard let told = answer.optionalText("app"), !told.isEmpty else {
            throw .incomplete("the app's name is not known, and the server does not tell it; expected --app")
        }
        let known = try kept.read().app
        guard known == nil || known == told else {
            throw .notGenuine("the server calls the app `\(told)`; it was `\(known ?? "")` before")
        }
        if known == nil { try await kept.change { $0.app = told } }
        return told
    }

    /// The name, where it is known already.
    func known() throws(ClientProblem) -> String {
        if let app = installation.app { return app }
        guard let app = try kept.read().app else { throw .notSignedIn }
        return app
    }
}
