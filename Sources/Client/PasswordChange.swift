import CountersignHandshake
import CountersignOpaque
import CountersignSchemes
import CountersignSeal
import CountersignWire

/// Changes the password of the signed-in account: proves the old one and registers the new one. The account's
/// other sessions end. Source: docs/protocol.md, "Another password".
package struct PasswordChange: Sendable {
    private let installation: Installation
    private let environment: ClientEnvironment

    package init(_ installation: Installation, environment: ClientEnvironment) {
        self.installation = installation
        self.environment = environment
    }

    /// Throws ``ClientOperationError/wrongCredentials`` if `old` is not the password, and
    /// ``ClientOperationError/accountChanged`` if another session began here meanwhile. Computes two slow
    /// hashes. After an unknown outcome the next login shows which of the two is the
    /// password. A proof that expired between the two steps begins anew once.
    package func callAsFunction(
        from old: Password, to new: Password
    ) async throws(ClientOperationError) {
        do {
            try await change(from: old, to: new)
        } catch {
            guard case .refused(let notice) = error, notice.isOfExpiredLogin else { throw error }
            try await change(from: old, to: new)
        }
    }

    private func change(from old: Password, to new: Password) async throws(ClientOperationError) {
        let state = try environment.keeper.state()
        guard let login = state.login else { throw .notSignedIn }
        guard case .device = login.session, let keys = state.keys,
            let app = AppIdentity(installation, state: state).name
        else {
            throw .incomplete(
                "the password is changed from a session of OPAQUE's; this one sent its password")
        }
        let signer = try environment.signer(keys)
        let proving = try OpaqueStart.login(old)
        let registering = try OpaqueStart.registration(new)
        let routes = AuthenticatedRoutes(installation: installation, environment: environment)
        // The proof names the session: under another session the authority would refuse it like a wrong
        // password.
        let owner = SignedCalls.Owner.session(login.id)
        let answer = try await routes.send(
            "POST", path: "/password/start",
            body: ["ke1": .bytes(proving.ke1.bytes), "request": .bytes(registering.request.bytes)],
            as: owner)
        try answer.checkLength(of: new)
        let binding = LoginBinding(
            app: app, account: login.account, release: installation.release.keyID.description,
            device: keys.device(class: login.deviceClass, name: login.deviceName))
        let proof = try PasswordProof(
            proving, response: answer, binding: binding, stretching: environment.stretching)
        let (record, handle) = try SignUp.sealed(
            registering, response: answer, app: app, account: login.account,
            stretching: environment.stretching)
        let digest = SHA256.digest(record.span)
        let signed = try proof.signed(
            .passwordChange, by: signer, more: [login.id.bytes, digest.indices.map { digest[$0] }])
        // The proof is valid once: the authority would refuse a second copy of an accepted one like a wrong
        // password.
        _ = try await routes.send(
            "POST", path: "/password/finish",
            body: .object(signed.members + [("handle", .bytes(handle)), ("sealed_record", .bytes(record))]),
            as: owner,
            ifLost: .stop)
    }
}

/// The client's last step of OPAQUE: the server's response proves that the server has the account's record,
/// and the client proves in turn that it knows the password. Valid for one purpose. Source: docs/protocol.md,
/// "Login".
struct PasswordProof {
    let keys: LoginKeys
    private let binding: LoginBinding
    private let loginID: [UInt8]
    private let messages: (ke1: [UInt8], ke2: [UInt8], ke3: [UInt8])

    /// `answer` has `login_id` and `ke2`. Throws ``ClientOperationError/wrongCredentials`` if the password
    /// does not match, and if the response was changed on the way: OPAQUE does not distinguish the two.
    init(
        _ login: consuming ClientLogin, response answer: ResponseFields, binding: LoginBinding,
        stretching: KeyStretchingFunction
    ) throws(ClientOperationError) {
        loginID = try answer.bytes("login_id")
        let bytes = try answer.bytes("ke2", count: MessageKind.ke2.count)
        guard let parties = binding.parties, let context = binding.context else {
            throw .notUnderstood("the app's name is empty")
        }
        let ke1 = login.ke1.bytes
        let ke2: KE2
        do {
            ke2 = try KE2(bytes)
        } catch {
            throw answer.missing("ke2", expected: "a message of OPAQUE's")
        }
        let loggedIn: ClientLogin.LoginOutput
        do {
            loggedIn = try login.finish(ke2, as: parties, context: context, stretching: stretching)
        } catch {
            switch error {
            case .cryptography: throw .machine("the password cannot be stretched; it takes 19 MiB of memory")
            default: throw .wrongCredentials
            }
        }
        keys = LoginKeys(sessionKey: loggedIn.sessionKey)
        self.binding = binding
        messages = (ke1, bytes, loggedIn.ke3.bytes)
    }

    /// The members that a finish request carries.
    struct Signed {
        let members: [(name: String, value: JSONValue)]
    }

    /// `more` is what the purpose binds in addition.
    func signed(
        _ purpose: LoginBinding.Purpose, by device: any DeviceSigner, more: [[UInt8]] = []
    ) throws(ClientOperationError) -> Signed {
        let transcript = binding.finishTranscript(
            purpose, loginID: loginID, ke1: messages.ke1, ke2: messages.ke2, ke3: messages.ke3, more: more)
        let signature = try device.sign(transcript)
        let mac = keys.finish.authenticate((transcript + signature).span)
        return Signed(members: [
            ("login_id", .bytes(loginID)), ("ke3", .bytes(messages.ke3)), ("signature", .bytes(signature)),
            ("mac", .bytes(mac.indices.map { mac[$0] })),
        ])
    }
}

/// OPAQUE's first steps, which fail only if the machine's library does.
enum OpaqueStart {
    static func login(_ password: Password) throws(ClientOperationError) -> ClientLogin {
        do {
            return try ClientLogin(password)
        } catch {
            throw .machine("the password cannot be blinded")
        }
    }

    static func registration(_ password: Password) throws(ClientOperationError) -> ClientRegistration {
        do {
            return try ClientRegistration(password)
        } catch {
            throw .machine("the password cannot be blinded")
        }
    }
}
