import CountersignHandshake
import CountersignOpaque
import CountersignSeal
import CountersignVault
import CountersignWire

/// Signs in by sending the password, over TLS and to a pinned certificate, for apps whose policy allows it.
/// The result is a bearer session: a party that reads its tokens can use them. ``LogIn`` has neither
/// weakness. Source: docs/protocol.md, "Bearer sessions".
package struct PasswordLogIn: Sendable {
    private let installation: Installation
    private let environment: ClientEnvironment

    package init(_ installation: Installation, environment: ClientEnvironment) {
        self.installation = installation
        self.environment = environment
    }

    /// `password` is UTF-8.
    package func callAsFunction(
        _ account: AccountName, password: Secret, on kind: Device.Class, named name: Device.Name
    ) async throws(ClientOperationError) -> ActiveLogin {
        let grant = PasswordGrant(installation, environment: environment)
        let solver = LoginWorkSolver(environment: environment, budget: WorkBudget())
        let signedIn = try await solver.perform { (work) async throws(ClientOperationError) in
            // The same lease as in ``LogIn``; not held while the device works.
            let lease = try await environment.keeper.lease()
            defer { lease.release() }
            let granted = try await grant.request(
                account, password: password, on: kind, named: name, with: work)
            let signedIn = ActiveLogin(
                account: account, deviceClass: kind, deviceName: name, slots: granted.slots,
                session: .bearer(granted.session))
            try environment.keeper.change { state in
                state.begin(signedIn)
                return .write(())
            }
            return signedIn
        }
        PendingLogOuts(installation: installation, environment: environment).sendInBackground()
        return signedIn
    }
}

/// One `login/password`: sends the password and returns a bearer session. Stores neither.
struct PasswordGrant: Sendable {
    private let installation: Installation
    private let environment: ClientEnvironment

    init(_ installation: Installation, environment: ClientEnvironment) {
        self.installation = installation
        self.environment = environment
    }

    struct Grant: Sendable {
        let session: BearerSession
        let slots: String
    }

    /// Does the work that a refusal offers, within `budget`.
    func request(
        _ account: AccountName, password: Secret, on kind: Device.Class, named name: Device.Name,
        working budget: WorkBudget
    ) async throws(ClientOperationError) -> Grant {
        try await LoginWorkSolver(environment: environment, budget: budget).perform {
            (work) async throws(ClientOperationError) in
            try await request(account, password: password, on: kind, named: name, with: work)
        }
    }

    /// `password` is UTF-8. The route reads the class and the name of the device, and none of its keys.
    func request(
        _ account: AccountName, password: Secret, on kind: Device.Class, named name: Device.Name,
        with work: LoginWorkSolver.Members
    ) async throws(ClientOperationError) -> Grant {
        let proof = try installation.requiredProofForBearerSecrets()
        let routes = AuthorityRoutes(installation: installation, environment: environment)
        let answered = try await routes.post(to: "/login/password", requiring: proof) {
            (_) throws(ClientOperationError) in
            .object(
                [
                    ("account", .string(account.description)),
                    (
                        "password",
                        .utf8(password.withExposedBytes { $0.withUnsafeBufferPointer { Array($0) } })
                    ),
                    ("device", ["class": .string(kind.rawValue), "name": .string(name.description)]),
                ] + work)
        }
        let answer = try ResponseFields(answered.response, of: "login/password")
        guard let id = SessionID(try answer.text("session")) else {
            throw answer.missing("session", expected: "a session's id")
        }
        let session = BearerSession(
            id: id, token: try answer.secret("token"), loginToken: try answer.secret("login_token"),
            expires: try answer.number("expires"), idle: try answer.number("idle"))
        return Grant(session: session, slots: answer.optionalText("slots") ?? "")
    }
}

extension ResponseFields {
    /// A token: visible ASCII.
    func secret(_ name: String) throws(ClientOperationError) -> Secret {
        let bytes = Array(try text(name).utf8)
        guard (8...512).contains(bytes.count), bytes.allSatisfy({ $0 > 0x20 && $0 < 0x7F }) else {
            throw missing(name, expected: "a token")
        }
        return Secret(copying: bytes.span)
    }
}

/// Signs in by OPAQUE, for apps with some accounts still on the login ladder, without revealing which those
/// are.
///
/// An account on the ladder answers an OPAQUE login like an unknown name or a wrong password. In each of the
/// three cases the client then sends the password once to `login/password`, over TLS and to a pinned
/// certificate; the authority takes an account with that password off the ladder. The client ends the session
/// that the response brings and signs in by OPAQUE. It never does so for an account that this device knows to
/// sign in by OPAQUE. Source: docs/protocol.md, "Accounts on the ladder, and new clients"; decision 0049.
package struct FallbackLogIn: Sendable {
    private let installation: Installation
    private let environment: ClientEnvironment
    private let known: OpaqueAccounts
    private let isPinned: @Sendable () -> Bool

    /// `isPinned` returns whether the certificate is pinned now: a manifest may replace the pins during the
    /// login.
    package init(
        _ installation: Installation, environment: ClientEnvironment, known: OpaqueAccounts,
        isPinned: @escaping @Sendable () -> Bool
    ) {
        self.installation = installation
        self.environment = environment
        self.known = known
        self.isPinned = isPinned
    }

    /// Throws ``ClientOperationError/certificateNotPinned`` before it sends anything if no certificate is
    /// pinned, whatever ``Installation/bearerSecrets`` says. `sent` is the password as UTF-8. Computes a slow
    /// hash for each login.
    package func callAsFunction(
        _ account: AccountName, password: Password, sent: Secret, on kind: Device.Class,
        named name: Device.Name,
        keepingSigningKey place: SigningKeyPlace = .vault
    ) async throws(ClientOperationError) -> ActiveLogin {
        guard installation.channel == .pinned, installation.transport == .tls else {
            throw .certificateNotPinned
        }
        let (logIn, budget) = (LogIn(installation, environment: environment), WorkBudget())
        do {
            return try await logIn(
                account, password: password, on: kind, named: name, keepingSigningKey: place, working: budget)
        } catch {
            guard case .wrongCredentials = error, try !isKnown(account) else { throw error }
        }
        guard isPinned() else { throw .certificateNotPinned }
        let session = try await PasswordGrant(installation, environment: environment).request(
            account, password: sent, on: kind, named: name, working: budget)
        await end(session)
        return try await logIn(
            account, password: password, on: kind, named: name, keepingSigningKey: place, working: budget)
    }

    /// An OPAQUE session counts, too: a build that stored no entries may have begun it.
    private func isKnown(_ account: AccountName) throws(ClientOperationError) -> Bool {
        if let login = try environment.keeper.state().login, login.account == account,
            case .device = login.session
        {
            return true
        }
        return try known.contains(account)
    }

    /// The login continues whether or not this succeeds: what remains is a session without a holder, which
    /// expires.
    private func end(_ grant: PasswordGrant.Grant) async {
        var draft = installation.draft("POST", path: "/logout", body: [:])
        environment.addIdempotencyKey(to: &draft)
        draft.fields.append(grant.session.authorization)
        guard let time = try? environment.now() else { return }
        _ = try? await SignedRequestSender(environment: environment).send(
            draft, as: installation.release, at: time, authority: installation.authorityKeys)
    }
}
