import CountersignClient
import CountersignHandshake
import CountersignOpaque
import CountersignSeal
import CountersignWire

extension CountersignClient {
    /// Makes an account. The password stays here: what travels is of no use without the authority's own secret. Signs nobody in.
    ///
    /// `name` has at most 128 bytes of UTF-8 once it is in its one spelling, `password` 1024. Computes a slow hash (19 MiB).
    public func signUp(_ name: String, _ password: String) async throws(CountersignError) {
        try await register(name, password, nil)
    }

    /// Sets a password anew, with the one-time code that an administrator gave out.
    public func resetPassword(_ name: String, to password: String, code: String) async throws(CountersignError) {
        try await register(name, password, Secret(copying: Array(code.utf8).span))
    }

    private func register(_ name: String, _ password: String, _ code: Secret?) async throws(CountersignError) {
        let (account, password) = (try Typed.account(name), try Typed.password(password))
        try await core.step(signer) { (installation, way) async throws(ClientProblem) in
            try await SignUp(installation, way)(account, password, resetCode: code)
        }
    }

    /// How somebody proves that he knows his password.
    public enum LogInMethod: Sendable, Hashable {
        /// By OPAQUE: neither the password nor anything that could be used in its place is sent. Source: RFC 9807.
        case opaque
        /// It is sent, over TLS and to a pinned certificate, where the app's policy allows it: for accounts that are still on
        /// their way from an older system. The session is of tokens that whoever reads them can use.
        case passwordIsSent

        /// What a person reads who binds the device's key to his presence.
        static let reason = "Sign in"
    }

    /// Signs somebody in on this device, in the place of who is signed in here. Computes a slow hash (19 MiB)
    /// by ``LogInMethod/opaque``; where ``CountersignOptions/passwordLogin`` allows it, an account on the
    /// login ladder is taken off it on the way.
    @discardableResult
    public func logIn(
        _ name: String, _ password: String, by method: LogInMethod = .opaque
    ) async throws(CountersignError) -> CountersignAccount {
        let account = try Typed.account(name)
        let device = try Typed.device(core.options.device)
        let place: SigningKeyPlace = core.boundKey(LogInMethod.reason).map { .boundToPresence($0) } ?? .vault
        let signedIn: SignedIn
        try await core.open()
        core.standings.beginLogin()
        defer { core.standings.endLogin() }
        switch method {
        case .opaque:
            let secret = Secret(copying: Array(password.utf8).span)
            let password = try Typed.password(password)
            let (fallback, trust) = (core.passwordFallback, core.trust)
            signedIn = try await core.step(signer) { (installation, way) async throws(ClientProblem) in
                guard let known = fallback else {
                    return try await LogIn(installation, way)(
                        account, password, on: device.kind, named: device.name, keepingSigningKey: place)
                }
                return try await FallbackLogIn(installation, way, known, isPinned: { trust.isPinned })(
                    account, password, sent: secret, on: device.kind, named: device.name, keepingSigningKey: place)
            }
        case .passwordIsSent:
            let secret = Secret(copying: Array(password.utf8).span)
            signedIn = try await core.step(signer) { (installation, way) async throws(ClientProblem) in
                try await PasswordLogIn(installation, way)(account, secret, on: device.kind, named: device.name)
            }
        }
        return CountersignAccount(name: signedIn.account.description, session: signedIn.id.description)
    }

    /// Another password for who is signed in. His sessions on other devices end. After an error whose outcome is unknown, the next
    /// login tells which of the two is the password. Computes two slow hashes.
    public func changePassword(from old: String, to new: String) async throws(CountersignError) {
        let (old, new) = (try Typed.password(old), try Typed.password(new))
        try await core.step(signer) { (installation, way) async throws(ClientProblem) in
            try await ChangePassword(installation, way)(from: old, to: new)
        }
    }

    /// Ends the session, at the authority and here. Where the authority cannot be reached it throws and the session stays: one that
    /// only this device had forgotten would live on. ``forgetSession()`` forgets it all the same.
    public func logOut() async throws(CountersignError) {
        try await core.step(signer) { (installation, way) async throws(ClientProblem) in
            _ = try await LogOut(installation, way)()
        }
    }

    /// Who signed in last on this device, to fill in the login page; nil where nobody has, or where nothing is remembered
    /// (``CountersignOptions/Remembering/nothing``). The password is never kept.
    public func lastAccountName() async throws(CountersignError) -> String? {
        try await core.step(nil) { (_, way) async throws(ClientProblem) in
            try way.keeper.state().lastAccount?.description
        }
    }

    /// Forgets that name: for a device that several people use. While somebody is signed in it is that session's.
    public func forgetLastAccountName() async throws(CountersignError) {
        try await core.step(nil) { (_, way) async throws(ClientProblem) in
            try way.keeper.forgetLastAccount()
        }
    }

    /// Forgets the session on this device, and nowhere else: for a server that cannot be reached. It lives there until it is
    /// ended from another device, or runs out.
    public func forgetSession() async throws(CountersignError) {
        try await core.step(signer) { (installation, way) async throws(ClientProblem) in
            try LogOut(installation, way).forgetHere()
        }
    }
}

/// What a person typed, as the protocol's steps take it.
private enum Typed {
    static func account(_ name: String) throws(CountersignError) -> AccountName {
        do {
            return try AccountName(normalizing: name)
        } catch {
            throw .unusableName("\(error)")
        }
    }

    static func password(_ text: String) throws(CountersignError) -> Password {
        do {
            return try Password(typed: Secret(copying: Array(text.utf8).span))
        } catch {
            throw .unusablePassword("\(error)")
        }
    }

    static func device(_ device: DeviceDescription) throws(CountersignError) -> (kind: Device.Class, name: Device.Name)
    {
        guard let kind = Device.Class(rawValue: device.kind.rawValue), let name = Device.Name(device.name) else {
            throw .misuse("device: expected a name of 1 to 64 bytes without control characters")
        }
        return (kind, name)
    }
}
