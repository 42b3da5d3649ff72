import CountersignClient
import CountersignHandshake
import CountersignOpaque
import CountersignSeal
import CountersignWire

extension CountersignClient {
    /// Creates an account. The password stays on the device: what is sent is of no use without the
    /// authority's own secret. Does not sign in.
    ///
    /// `name` has at most 128 bytes of UTF-8 in its canonical form; `password` has at most 1024 and keeps
    /// ``CountersignOptions/passwordRules``. Computes a slow hash (19 MiB).
    public func signUp(_ name: String, _ password: String) async throws(CountersignError) {
        try await register(name, password: password, code: nil)
    }

    /// Sets a new password with the one-time code from an administrator. The account then knows this device
    /// and no other: guesses at the password from unknown devices do not prevent it from signing in.
    public func resetPassword(_ name: String, to password: String, code: String)
        async throws(CountersignError)
    {
        try await register(name, password: password, code: Secret(copying: Array(code.utf8).span))
    }

    private func register(_ name: String, password: String, code: Secret?) async throws(CountersignError) {
        try await core.options.passwordRules.check(password)
        let (account, password) = (try LoginInput.account(name), try LoginInput.password(password))
        let device = code == nil ? nil : try LoginInput.device(core.options.device)
        try await core.run(signer: signer) { (installation, environment) async throws(ClientOperationError) in
            try await SignUp(installation, environment: environment)(
                account, password: password, resetCode: code, on: device)
        }
    }

    /// How a login proves the password.
    public enum LogInMethod: Sendable, Hashable {
        /// By OPAQUE: the device sends neither the password nor anything that could replace it. Source: RFC
        /// 9807.
        case opaque
        /// The device sends the password, over TLS and to a pinned certificate, if the app's policy allows
        /// it: for accounts that have yet to move from an older system. The session consists of bearer
        /// tokens: a party that reads them can use them.
        case passwordIsSent

        /// The text of the prompt when a login binds the device's key to presence.
        static let reason = "Sign in"
    }

    /// Signs an account in on this device and replaces the account that is signed in. Computes a slow hash
    /// (19 MiB) for ``LogInMethod/opaque``; if ``CountersignOptions/passwordLogin`` allows it, takes an
    /// account on the login ladder off it.
    ///
    /// Where strangers have used up the account's limit and this device is new to the account, does the work
    /// that the server offers for a start all the same: off the main actor, at most 20 s, ended by the task's
    /// cancellation. On a device that would need longer it throws ``CountersignError/refused(_:)`` with the
    /// seconds to wait.
    @discardableResult
    public func logIn(
        _ name: String, _ password: String, by method: LogInMethod = .opaque
    ) async throws(CountersignError) -> CountersignAccount {
        let account = try LoginInput.account(name)
        let device = try LoginInput.device(core.options.device)
        let place: SigningKeyPlace = core.boundKey(LogInMethod.reason).map { .boundToPresence($0) } ?? .vault
        let signedIn: ActiveLogin
        try await core.open()
        core.stateMachine.beginLogin()
        defer { core.stateMachine.endLogin() }
        switch method {
        case .opaque:
            let secret = Secret(copying: Array(password.utf8).span)
            let password = try LoginInput.password(password)
            let (fallback, trust) = (core.passwordFallback, core.trust)
            signedIn = try await core.run(signer: signer) {
                (installation, environment) async throws(ClientOperationError) in
                guard let known = fallback else {
                    return try await LogIn(installation, environment: environment)(
                        account, password: password, on: device.kind, named: device.name,
                        keepingSigningKey: place)
                }
                return try await FallbackLogIn(
                    installation, environment: environment, known: known, isPinned: { trust.isPinned })(
                        account, password: password, sent: secret, on: device.kind, named: device.name,
                        keepingSigningKey: place)
            }
        case .passwordIsSent:
            let secret = Secret(copying: Array(password.utf8).span)
            signedIn = try await core.run(signer: signer) {
                (installation, environment) async throws(ClientOperationError) in
                try await PasswordLogIn(installation, environment: environment)(
                    account, password: secret, on: device.kind, named: device.name)
            }
        }
        return CountersignAccount(name: signedIn.account.description, session: signedIn.id.description)
    }

    /// Changes the password of the signed-in account. Its sessions on other devices end. After an error whose
    /// outcome is unknown, the next login shows which of the two is the password. Computes two slow hashes.
    public func changePassword(from old: String, to new: String) async throws(CountersignError) {
        try await core.options.passwordRules.check(new)
        let (old, new) = (try LoginInput.password(old), try LoginInput.password(new))
        try await core.run(signer: signer) { (installation, environment) async throws(ClientOperationError) in
            try await PasswordChange(installation, environment: environment)(from: old, to: new)
        }
    }

    /// Ends the session on this device at once, whether or not the authority can be reached. If it cannot,
    /// the client keeps in the vault what it takes to tell it: nothing that renews the session, but the key
    /// or token of its last requests, which signs requests until it expires or the authority is told. The
    /// client tells it in the background: when it is next opened, and after logins and requests.
    /// Throws only if no account is signed in, or if the vault fails.
    @discardableResult
    public func logOut() async throws(CountersignError) -> LogOutResult {
        try await core.openQuietly()
        return try await core.run(signer: signer) {
            (installation, environment) async throws(ClientOperationError) in
            switch try await LogOut(installation, environment: environment)() {
            case .signedOut, .hadEnded: .serverKnows
            case .toldLater: .serverIsToldLater
            }
        }
    }

    /// Whether the authority knows that a session has ended; on this device it has.
    public enum LogOutResult: Sendable, Hashable {
        /// It has said, under a key that proves it, that it has ended the session, or had before.
        case serverKnows
        /// It could not be reached, or has not said so, and is told later, in the background: when the client
        /// is next opened, and after logins and requests. Until then, or until the session is idle for too
        /// long, it lists the session. With ``CountersignOptions/Remembering/nothing`` only this process can
        /// tell it.
        case serverIsToldLater
    }

    /// The account that signed in last on this device, to fill in the login page; nil if there is none, or if
    /// nothing is remembered (``CountersignOptions/Remembering/nothing``). The password is never stored.
    public func lastAccountName() async throws(CountersignError) -> String? {
        try await core.run(signer: nil) { (_, environment) async throws(ClientOperationError) in
            try environment.keeper.state().lastAccount?.description
        }
    }

    /// Removes that name, for a device that several people use. While an account is signed in, the name stays
    /// that of the session.
    public func forgetLastAccountName() async throws(CountersignError) {
        try await core.run(signer: nil) { (_, environment) async throws(ClientOperationError) in
            try environment.keeper.forgetLastAccount()
        }
    }

    /// Removes the session from this device only, for a server that cannot be reached. The session lives
    /// there until another device ends it, or it expires.
    public func forgetSession() async throws(CountersignError) {
        try await core.run(signer: signer) { (installation, environment) async throws(ClientOperationError) in
            try LogOut(installation, environment: environment).forgetHere()
        }
    }
}

/// The user's input as the client module takes it.
private enum LoginInput {
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

    static func device(_ device: DeviceDescription) throws(CountersignError) -> (
        kind: Device.Class, name: Device.Name
    ) {
        guard let kind = Device.Class(rawValue: device.kind.rawValue), let name = Device.Name(device.name)
        else {
            throw .misuse("device: expected a name of 1 to 64 bytes without control characters")
        }
        return (kind, name)
    }
}

extension CountersignClient {
    /// One of an account's sessions, as its owner may see it.
    public struct Session: Sendable, Hashable {
        /// Shown to people; opens nothing.
        public let id: String
        /// `phone`, `desktop`…
        public let deviceKind: String
        /// The name that the device gave itself.
        public let deviceName: String
        /// Whole Unix seconds.
        public let created: Int64
        /// The last login or refresh; whole Unix seconds.
        public let used: Int64
        /// Where the device says that it stores its keys: `secure-enclave`, `tpm`, `software`. Nil if it has
        /// not said, and from servers that do not ask. The server does not verify it.
        public let keyStorage: String?
        /// Whether it is this client's own.
        public let isCurrent: Bool

        init(_ entry: AccountSessions.Entry) {
            id = entry.id.description
            deviceKind = entry.deviceClass
            deviceName = entry.deviceName
            created = entry.created
            used = entry.used
            keyStorage = entry.keyStorage
            isCurrent = entry.isCurrent
        }
    }

    /// The account's live sessions; of many, the newest.
    public func sessions() async throws(CountersignError) -> [Session] {
        try await core.passGate()
        return try await core.run(signer: signer) {
            (installation, environment) async throws(ClientOperationError) in
            try await AccountSessions(installation, environment: environment).list()
        }.map(Session.init)
    }

    /// Ends another session of the account. The account then no longer knows that session's device, unless it
    /// is this one: its guesses at the password count like those of any stranger.
    public func endSession(_ id: String) async throws(CountersignError) {
        guard let session = SessionID(id) else {
            throw .misuse("session: expected an id as sessions() has it")
        }
        try await core.passGate()
        try await core.run(signer: signer) { (installation, environment) async throws(ClientOperationError) in
            try await AccountSessions(installation, environment: environment).end(session)
        }
    }

    /// Asks the authority for this session, and renews it if its token has expired: for HTTP stacks that sent
    /// a ``SignedRequest`` and received `token-expired`. Throws ``CountersignError/signedOut(_:)`` if the
    /// session is over.
    @discardableResult
    public func confirmSession() async throws(CountersignError) -> Session {
        try await core.passGate()
        return try await confirmAtTheGate()
    }

    /// The same, for the gate itself.
    @discardableResult
    func confirmAtTheGate() async throws(CountersignError) -> Session {
        let current = try await core.run(signer: signer) {
            (installation, environment) async throws(ClientOperationError) in
            try await AccountSessions(installation, environment: environment).current()
        }
        return Session(current.entry)
    }
}
