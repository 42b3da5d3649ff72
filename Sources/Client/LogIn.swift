import CountersignHandshake
import CountersignOpaque
import CountersignSchemes
import CountersignSeal
import CountersignVault
import CountersignWire

/// Signs a user in on this device. The device sends neither the password nor anything that could replace it,
/// and the session is worth nothing on another device. Source: docs/protocol.md, "Login"; RFC 9807 §6.
package struct LogIn: Sendable {
    private let installation: Installation
    private let environment: ClientEnvironment

    package init(_ installation: Installation, environment: ClientEnvironment) {
        self.installation = installation
        self.environment = environment
    }

    /// The session replaces one that is stored here. Computes a slow hash.
    ///
    /// From the moment at which the authority creates the session until it is stored here, other processes
    /// wait: of two simultaneous logins the later one ends the earlier one's session, and must be the stored
    /// one.
    ///
    /// A login that expired between its two steps begins anew once, since the password is still at hand.
    package func callAsFunction(
        _ account: AccountName, password: Password, on kind: Device.Class, named name: Device.Name,
        keepingSigningKey place: SigningKeyPlace = .vault
    ) async throws(ClientOperationError) -> ActiveLogin {
        try await self(
            account, password: password, on: kind, named: name, keepingSigningKey: place,
            working: WorkBudget())
    }

    /// The same as a part of a call that has spent some of `budget` already.
    func callAsFunction(
        _ account: AccountName, password: Password, on kind: Device.Class, named name: Device.Name,
        keepingSigningKey place: SigningKeyPlace, working budget: WorkBudget
    ) async throws(ClientOperationError) -> ActiveLogin {
        let login: ActiveLogin
        do {
            login = try await logIn(
                account, password: password, on: kind, named: name, keepingSigningKey: place, working: budget)
        } catch {
            guard case .refused(let notice) = error, notice.isOfExpiredLogin else { throw error }
            login = try await logIn(
                account, password: password, on: kind, named: name, keepingSigningKey: place, working: budget)
        }
        PendingLogOuts(installation: installation, environment: environment).sendInBackground()
        return login
    }

    private func logIn(
        _ account: AccountName, password: Password, on kind: Device.Class, named name: Device.Name,
        keepingSigningKey place: SigningKeyPlace, working budget: WorkBudget
    ) async throws(ClientOperationError) -> ActiveLogin {
        let presented = try LoginDevice(environment, keeping: place)
        let keys = presented.keys
        let routes = AuthorityRoutes(installation: installation, environment: environment)
        let device = keys.device(class: kind, name: name)
        let login = try OpaqueStart.login(password)
        let ke1 = login.ke1.bytes
        let known = AppIdentity(installation, state: try environment.keeper.state())
        let started = try await LoginWorkSolver(environment: environment, budget: budget).perform {
            (work) async throws(ClientOperationError) in
            try await routes.post(to: "/login/start", requiring: .authoritySignatureIfKeyKnown) {
                (time) throws(ClientOperationError) in
                var members: [(name: String, value: JSONValue)] = [
                    ("account", .string(account.description)), ("ke1", .bytes(ke1)), ("device", device.json),
                ]
                if let app = known.name {
                    let binding = LoginBinding(
                        app: app, account: account, release: releaseID, device: device)
                    let proof = try presented.signer.sign(binding.startProof(ke1: ke1, time: time))
                    members.append(("proof", ["time": .integer(time), "signature": .bytes(proof)]))
                }
                return .object(members + work)
            }
        }
        let answer = try ResponseFields(started.response, of: "login/start")
        let app = try known.resolved(by: answer)
        let binding = LoginBinding(
            app: app, account: account, release: releaseID, device: try LogIn.bound(device, by: answer))
        let proof = try PasswordProof(
            login, response: answer, binding: binding, stretching: environment.stretching)
        // Before there is a session: from here on the account is known to have a registration.
        try environment.opaqueAccounts?.insert(account)
        let signed = try proof.signed(.login, by: presented.signer)
        try await presented.bind()
        let lease = try await environment.keeper.lease()
        defer { lease.release() }
        let session = try await finish(routes, root: proof.keys.root, signed: signed)
        let signedIn = ActiveLogin(
            account: account, deviceClass: kind, deviceName: name, slots: session.slots,
            session: .device(session.session))
        try environment.keeper.change { state in
            state.app = app
            state.keys = keys
            state.begin(signedIn)
            return .write(())
        }
        return signedIn
    }

    /// The device as both ends bind it: a server neither repeats nor binds a `key_storage` that it does not
    /// know.
    private static func bound(_ device: Device, by answer: ResponseFields) throws(ClientOperationError)
        -> Device
    {
        let repeated = answer.optionalText("key_storage")
        guard repeated == nil || repeated == device.keyStorage?.rawValue else {
            throw .notGenuine("login/start: key_storage: another than was sent")
        }
        var device = device
        if repeated == nil { device.keyStorage = nil }
        return device
    }

    private var releaseID: String { installation.release.keyID.description }

    /// Sends the proof. The response counts only if it is signed with the key that this login derived on both
    /// ends.
    private func finish(
        _ routes: AuthorityRoutes, root: SessionRoot, signed: PasswordProof.Signed
    ) async throws(ClientOperationError) -> (session: DeviceSession, slots: String) {
        let key = SigningKey(root.requestKey)
        func token(in response: Response) -> SessionToken? {
            let token = try? ResponseFields(response, of: "login/finish").token()
            return token?.epoch == 0 ? token : nil
        }
        let finished = try await routes.post(
            to: "/login/finish",
            requiring: .signature { response in token(in: response).map { [KeyID($0): key] } ?? [:] }
        ) { (_) throws(ClientOperationError) in .object(signed.members) }
        guard let token = token(in: finished.response), finished.signer == KeyID(token) else {
            throw .notGenuine("login/finish: not signed with the new session's key")
        }
        let answer = try ResponseFields(finished.response, of: "login/finish")
        let session = DeviceSession(
            id: token.id,
            current: DeviceSession.Epoch(
                number: 0, root: root, release: installation.release.keyID,
                expires: try answer.number("expires")),
            idle: try answer.number("idle"))
        return (session, answer.optionalText("slots") ?? "")
    }
}

/// The device that a login presents: its keys, and the signer that signs for it now.
struct LoginDevice: Sendable {
    /// The keys that are stored once the login has succeeded.
    let keys: DeviceKeys
    let signer: any DeviceSigner
    /// A key that must be bound to presence first.
    private let unbound: (key: Secret, binder: any DeviceKeyBinder)?

    /// Keys in use, with a signer that works now.
    init(keys: DeviceKeys, signer: any DeviceSigner) {
        self.keys = keys
        self.signer = signer
        unbound = nil
    }

    /// Uses the existing keys if they work and are stored where and as requested; otherwise makes new ones: a
    /// key that was once in the vault may be in a copy of it, and a bound key is not released. New keys
    /// replace the old ones only when the login succeeds: a session may depend on the old ones.
    init(_ environment: ClientEnvironment, keeping place: SigningKeyPlace) throws(ClientOperationError) {
        let deviceKeys = environment.keeper.deviceKeys
        // As the vault has them: keys that another process uses must not give way to new ones.
        let known = try environment.keeper.readVault().keys
        switch place {
        case .vault:
            keys = try deviceKeys.keysForLogin(preferring: known)
            signer = try environment.signer(keys)
            unbound = nil
        case .boundToPresence(let binder):
            let best = try deviceKeys.policy.makers.first?.storage
            if let known, known.isBoundToPresence, known.storage == best,
                known.signingPoint == environment.signer?.point
            {
                (keys, signer, unbound) = (known, try environment.signer(known), nil)
                return
            }
            let made = try deviceKeys.makeBound()
            try deviceKeys.store(made, sparing: known)
            (keys, signer, unbound) = (made.keys, made.signer, (made.signing.wrapped, binder))
        }
    }

    /// Called before there is a session that could not continue without the key.
    func bind() async throws(ClientOperationError) {
        guard let unbound else { return }
        try await unbound.binder.bind(unbound.key, named: keys.name)
    }
}
