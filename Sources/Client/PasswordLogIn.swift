import CountersignHandshake
import CountersignOpaque
import CountersignSeal
import CountersignVault
import CountersignWire

/// Signs in by sending the password, over TLS and to a certificate that is pinned, for apps whose policy allows it. What comes back is a bearer session: tokens that
/// whoever reads them can use. ``LogIn`` has neither weakness. Source: docs/protocol.md, "Bearer sessions".
package struct PasswordLogIn: Sendable {
    private let installation: Installation
    private let surroundings: Surroundings

    package init(_ installation: Installation, _ surroundings: Surroundings) {
        self.installation = installation
        self.surroundings = surroundings
    }

    /// `password` is UTF-8.
    nonisolated(nonsending) package func callAsFunction(
        _ account: AccountName, _ password: Secret, on kind: Device.Class, named name: Device.Name
    ) async throws(ClientProblem) -> SignedIn {
        // As with ``LogIn``.
        let lease = try await surroundings.keeper.lease()
        defer { lease.release() }
        let granted = try await PasswordGrant(installation, surroundings).ask(
            account, password, on: kind, named: name)
        let signedIn = SignedIn(
            account: account, deviceClass: kind, deviceName: name, slots: granted.slots,
            session: .bearer(granted.session))
        try surroundings.keeper.change { state in
            state.begin(signedIn)
            return .write(())
        }
        return signedIn
    }
}

/// One `login/password`: the password goes out, a bearer session comes back. Nothing is kept of either.
struct PasswordGrant: Sendable {
    private let installation: Installation
    private let surroundings: Surroundings

    init(_ installation: Installation, _ surroundings: Surroundings) {
        self.installation = installation
        self.surroundings = surroundings
    }

    struct Granted: Sendable {
        let session: BearerSession
        let slots: String
    }

    /// `password` is UTF-8. The route reads the class and the name of the device, and none of its keys.
    nonisolated(nonsending) func ask(
        _ account: AccountName, _ password: Secret, on kind: Device.Class, named name: Device.Name
    ) async throws(ClientProblem) -> Granted {
        let trust = try installation.trustForBearerSecrets()
        let routes = AuthorityRoutes(installation: installation, surroundings: surroundings)
        let answered = try await routes.post("/login/password", trust: trust) { (_) throws(ClientProblem) in
            [
                "account": .string(account.description), "password": .string(password.withExposedBytes { $0.text }),
                "device": ["class": .string(kind.rawValue), "name": .string(name.description)],
            ]
        }
        let answer = try AnswerBody(answered.response, of: "login/password")
        guard let id = SessionID(try answer.text("session")) else { throw answer.missing("session", "a session's id") }
        let session = BearerSession(
            id: id, token: try answer.secret("token"), loginToken: try answer.secret("login_token"),
            expires: try answer.number("expires"), idle: try answer.number("idle"))
        return Granted(session: session, slots: answer.optionalText("slots") ?? "")
    }
}

extension AnswerBody {
    /// A token: visible ASCII.
    func secret(_ name: String) throws(ClientProblem) -> Secret {
        let bytes = Array(try text(name).utf8)
        guard (8...512).contains(bytes.count), bytes.allSatisfy({ $0 > 0x20 && $0 < 0x7F }) else {
            throw missing(name, "a token")
        }
        return Secret(copying: bytes.span)
    }
}
