import CountersignHandshake
import CountersignOpaque
import CountersignSchemes
import CountersignSeal
import CountersignVault
import CountersignWire

/// Signs a person in on this device. Neither the password nor anything that could be used in its place is sent, and what comes
/// back is worth nothing on another device. Source: docs/protocol.md, "Login"; RFC 9807 §6.
package struct LogIn: Sendable {
    private let installation: Installation
    private let surroundings: Surroundings

    package init(_ installation: Installation, _ surroundings: Surroundings) {
        self.installation = installation
        self.surroundings = surroundings
    }

    /// The session takes the place of one that is kept here. Computes a slow hash.
    ///
    /// From the moment at which the authority makes the session until it is kept here, others wait: of two logins at once the later
    /// one ends the earlier one's session, and must be the one that is kept.
    nonisolated(nonsending) package func callAsFunction(
        _ account: AccountName, _ password: Password, on kind: Device.Class, named name: Device.Name,
        keepingSigningKey place: SigningKeyPlace = .vault
    ) async throws(ClientProblem) -> SignedIn {
        let presented = try LoginDevice(surroundings, keeping: place)
        let keys = presented.keys
        let routes = AuthorityRoutes(installation: installation, surroundings: surroundings)
        let device = keys.device(kind, name)
        let login = try Blinding.login(password)
        let ke1 = login.ke1.bytes
        let known = KnownApp(installation, try surroundings.keeper.state())
        let started = try await routes.post("/login/start", trust: .authorityIfKnown) { (time) throws(ClientProblem) in
            var members: [(name: String, value: JSONValue)] = [
                ("account", .string(account.description)), ("ke1", .bytes(ke1)), ("device", device.json),
            ]
            if let app = known.name {
                let binding = LoginBinding(app: app, account: account, release: releaseID, device: device)
                let proof = try presented.signer.sign(binding.startProof(ke1: ke1, time: time))
                members.append(("proof", ["time": .integer(time), "signature": .bytes(proof)]))
            }
            return .object(members)
        }
        let answer = try AnswerBody(started.response, of: "login/start")
        let app = try known.settled(by: answer)
        let binding = LoginBinding(
            app: app, account: account, release: releaseID, device: try LogIn.bound(device, by: answer))
        let proof = try PasswordProof(login, answer, binding, stretching: surroundings.stretching)
        // Before there is a session: from here on the account is known to have a registration.
        try surroundings.opaqueAccounts?.insert(account)
        let signed = try proof.signed(.login, by: presented.signer)
        try await presented.bind()
        let lease = try await surroundings.keeper.lease()
        defer { lease.release() }
        let session = try await finish(routes, proof.keys.root, signed)
        let signedIn = SignedIn(
            account: account, deviceClass: kind, deviceName: name, slots: session.slots,
            session: .device(session.session))
        try surroundings.keeper.change { state in
            state.app = app
            state.keys = keys
            state.begin(signedIn)
            return .write(())
        }
        return signedIn
    }

    /// The device as both ends bind it. Servers from before there was a `key_storage` do not repeat it, and
    /// do not bind it.
    private static func bound(_ device: Device, by answer: AnswerBody) throws(ClientProblem) -> Device {
        let repeated = answer.optionalText("key_storage")
        guard repeated == nil || repeated == device.keyStorage?.rawValue else {
            throw .notGenuine("login/start: key_storage: another than was sent")
        }
        var device = device
        if repeated == nil { device.keyStorage = nil }
        return device
    }

    private var releaseID: String { installation.release.keyID.description }

    /// Sends the proof. The answer counts only if it is signed with the key that this login gave both ends.
    nonisolated(nonsending) private func finish(
        _ routes: AuthorityRoutes, _ root: SessionRoot, _ signed: PasswordProof.Signed
    ) async throws(ClientProblem) -> (session: DeviceSession, slots: String) {
        let key = SigningKey(root.requestKey)
        func token(in response: Response) -> SessionToken? {
            let token = try? AnswerBody(response, of: "login/finish").token()
            return token?.epoch == 0 ? token : nil
        }
        let finished = try await routes.post(
            "/login/finish", trust: .keys { response in token(in: response).map { [KeyID($0): key] } ?? [:] }
        ) { (_) throws(ClientProblem) in .object(signed.members) }
        guard let token = token(in: finished.response), finished.signer == KeyID(token) else {
            throw .notGenuine("login/finish: not signed with the new session's key")
        }
        let answer = try AnswerBody(finished.response, of: "login/finish")
        let session = DeviceSession(
            id: token.id,
            current: DeviceSession.Epoch(number: 0, root: root, expires: try answer.number("expires")),
            idle: try answer.number("idle"))
        return (session, answer.optionalText("slots") ?? "")
    }
}

extension Device {
    var json: JSONValue {
        [
            "signing_key": .bytes(signingKey.bytes), "agreement_key": .bytes(agreementKey.bytes),
            "class": .string(kind.rawValue), "name": .string(name.description),
            "key_storage": keyStorage.map { .string($0.rawValue) } ?? .null,
        ]
    }
}
