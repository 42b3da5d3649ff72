import CountersignHandshake
import CountersignOpaque
import CountersignSeal
import CountersignWire

/// Signs in by OPAQUE, for apps some of whose accounts are still on the login ladder, without telling which
/// those are.
///
/// An account on the ladder answers a login by OPAQUE as an unknown name does, and as a wrong password does.
/// In each of the three cases the password is then sent once to `login/password`, over TLS and to a pinned
/// certificate, where the authority takes an account whose password that is off the ladder. The session that
/// the answer brings is ended, and OPAQUE signs in. Never for an account that this device knows to sign in by
/// OPAQUE. Source: docs/protocol.md, "Accounts on the ladder, and new clients"; decision 0049.
package struct FallbackLogIn: Sendable {
    private let installation: Installation
    private let surroundings: Surroundings
    private let known: OpaqueAccounts
    private let isPinned: @Sendable () -> Bool

    /// `isPinned` tells whether the certificate is pinned now: a manifest may replace the pins while the
    /// login is under way.
    package init(
        _ installation: Installation, _ surroundings: Surroundings, _ known: OpaqueAccounts,
        isPinned: @escaping @Sendable () -> Bool
    ) {
        self.installation = installation
        self.surroundings = surroundings
        self.known = known
        self.isPinned = isPinned
    }

    /// Throws ``ClientProblem/certificateNotPinned`` before anything is sent where no certificate is pinned,
    /// whatever ``Installation/bearerSecrets`` says. `sent` is the password as UTF-8. Computes a slow hash
    /// for each login.
    nonisolated(nonsending) package func callAsFunction(
        _ account: AccountName, _ password: Password, sent: Secret, on kind: Device.Class,
        named name: Device.Name,
        keepingSigningKey place: SigningKeyPlace = .vault
    ) async throws(ClientProblem) -> SignedIn {
        guard installation.channel == .pinned, installation.transport == .tls else {
            throw .certificateNotPinned
        }
        let logIn = LogIn(installation, surroundings)
        do {
            return try await logIn(account, password, on: kind, named: name, keepingSigningKey: place)
        } catch {
            guard case .wrongCredentials = error, try !isKnown(account) else { throw error }
        }
        guard isPinned() else { throw .certificateNotPinned }
        let session = try await PasswordGrant(installation, surroundings).ask(
            account, sent, on: kind, named: name)
        await end(session)
        return try await logIn(account, password, on: kind, named: name, keepingSigningKey: place)
    }

    /// A session of OPAQUE's counts, too: a build that kept no entries may have begun it.
    private func isKnown(_ account: AccountName) throws(ClientProblem) -> Bool {
        if let login = try surroundings.keeper.state().login, login.account == account,
            case .device = login.session
        {
            return true
        }
        return try known.contains(account)
    }

    /// Whether it succeeds or not the login goes on: what is left is a session without a holder, which runs
    /// out.
    nonisolated(nonsending) private func end(_ grant: PasswordGrant.Granted) async {
        var draft = installation.draft("POST", "/logout", [:])
        draft.set("Idempotency-Key", Base64.encode(surroundings.random.bytes(16).span, .url))
        draft.fields.append(grant.session.authorization)
        guard let time = try? surroundings.now() else { return }
        let keys = installation.authorityKeys
        _ = try? await Listener(surroundings: surroundings).ask(draft, as: installation.release, at: time) {
            _ in keys
        }
    }
}
