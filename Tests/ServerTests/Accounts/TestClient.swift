import CountersignHandshake
import CountersignOpaque
import CountersignSchemes
import CountersignSeal
import CountersignWire
import Testing

@testable import CountersignServer

/// A device whose user knows a password. Each step is a separate call, so that a test can change the messages
/// in between.
struct TestClient {
    let server: TestServer
    var credentials: Credentials
    var app = "demo"
    var name: AccountName
    var password: String
    var device: Device
    let signing: PrivateKey
    var peer = "192.0.2.1:50000"
    /// The value sent for `key_storage`; nil for the device's own.
    var statedStorage: JSONValue?
    /// Cheap: which stretching a client uses is its own matter, and Argon2id's cost is measured elsewhere.
    var stretching: KeyStretchingFunction

    init(
        _ server: TestServer, _ name: String, _ password: String = "correct horse", on label: String = "phone"
    ) throws {
        self.server = server
        self.name = try AccountName(normalizing: name)
        self.password = password
        credentials = server.release
        signing = try PrivateKey(random: .ecdsaP256)
        device = Device(
            signingKey: try #require(P256Point(subjectPublicKeyInfo: signing.publicKey.der)),
            agreementKey: try AgreementKey().publicPoint, kind: .phone, name: try #require(Device.Name(label))
        )
        stretching = try #require(
            KeyStretchingFunction.argon2id(
                memory: 8, passes: 1, lanes: 1, salt: [UInt8](repeating: 0, count: 16)))
    }

    var binding: LoginBinding {
        LoginBinding(app: app, account: name, release: credentials.keyID.description, device: device)
    }

    private func secret() throws -> Password {
        try #require(Password(Secret(copying: Array(password.utf8).span)))
    }

    // MARK: Sign-up

    /// A registration between its two steps.
    struct Registering {
        var account: String
        var handle: [UInt8]
        var sealedRecord: [UInt8]

        var members: [(name: String, value: JSONValue)] {
            [
                ("account", .string(account)), ("handle", encoded(handle)),
                ("sealed_record", encoded(sealedRecord)),
            ]
        }
        var body: JSONValue { .object(members) }
    }

    /// The device member of a registration with that code.
    func resetDevice(_ registering: Registering, code: String) throws -> JSONValue {
        let known = ResetDevice(signingKey: device.signingKey, kind: device.kind, name: device.name)
        let transcript = known.transcript(
            app: app, account: name, handle: registering.handle, sealedRecord: registering.sealedRecord)
        let made = signing.sign(transcript.span)
        let signature = try #require(made)
        let mac = ResetDevice.key(from: Secret(copying: Array(code.utf8).span)).authenticate(
            (transcript + signature).span)
        return [
            "signing_key": encoded(device.signingKey.bytes), "class": .string(device.kind.rawValue),
            "name": .string(device.name.description), "signature": encoded(signature),
            "mac": encoded(mac.indices.map { mac[$0] }),
        ]
    }

    /// Sets the password by the code, on this device.
    func reset(code: String) async throws -> TestServer.Reply {
        let registering = try await beginRegistration(code: code)
        let members = registering.members + [("device", try resetDevice(registering, code: code))]
        return try await server.call("registration/finish", .object(members), as: credentials, from: peer)
    }

    enum Announcement { case nothing, thatACodeWillCome }

    func beginRegistration(code: String? = nil, saying announced: Announcement = .nothing) async throws
        -> Registering
    {
        let client = try ClientRegistration(try secret())
        var members: [(name: String, value: JSONValue)] = [
            ("account", .string(name.description)), ("request", encoded(client.request.bytes)),
        ]
        if code != nil || announced == .thatACodeWillCome { members.append(("reset", true)) }
        let reply = try await server.call("registration/start", .object(members), as: credentials, from: peer)
        try #require(reply.status == 200, "\(reply.refusal?.detail ?? "")")
        return try seal(client, reply, code)
    }

    private func seal(
        _ client: consuming ClientRegistration, _ reply: TestServer.Reply, _ code: String?
    ) throws -> Registering {
        let response = try RegistrationResponse(try #require(reply.bytes("response")))
        let parties = try #require(binding.parties)
        let registered = try client.finish(response, as: parties, stretching: stretching)
        let handle = try #require(reply.bytes("handle"))
        let contents = SealedRegistration(
            record: registered.record.bytes, resetCode: code.map { Secret(copying: Array($0.utf8).span) })
        let sealed = contents.sealed(
            to: try #require(reply.bytes("registration_key")),
            for: SealedRegistration.purpose(app: app, account: name, handle: handle))
        return Registering(account: name.description, handle: handle, sealedRecord: try #require(sealed))
    }

    @discardableResult
    func signUp(code: String? = nil) async throws -> TestServer.Reply {
        let registering = try await beginRegistration(code: code)
        return try await server.call("registration/finish", registering.body, as: credentials, from: peer)
    }

    // MARK: Login

    /// A login between its two steps, each part of which a test may change.
    struct Finishing {
        var loginID: [UInt8]
        var ke3: [UInt8]
        var signature: [UInt8]
        var mac: [UInt8]
        let requestKey: Secret

        var members: [(name: String, value: JSONValue)] {
            [
                ("login_id", encoded(loginID)), ("ke3", encoded(ke3)), ("signature", encoded(signature)),
                ("mac", encoded(mac)),
            ]
        }
        var body: JSONValue { .object(members) }

        /// The credentials with which the new session signs its requests.
        func session(_ reply: TestServer.Reply, _ release: Credentials) throws -> Credentials {
            let text = Array(try #require(reply["token"]).utf8)
            let token = SessionToken(text.span)
            return Credentials(try #require(token), key: SigningKey(requestKey), release: release.keyID)
        }
    }

    var deviceMembers: JSONValue {
        var members: [(name: String, value: JSONValue)] = [
            ("signing_key", encoded(device.signingKey.bytes)),
            ("agreement_key", encoded(device.agreementKey.bytes)),
            ("class", .string(device.kind.rawValue)), ("name", .string(device.name.description)),
        ]
        let storage = statedStorage ?? device.keyStorage.map { .string($0.rawValue) }
        if let storage { members.append(("key_storage", storage)) }
        return .object(members)
    }

    func start(
        _ ke1: [UInt8], proof: (time: Int64, signature: [UInt8])? = nil
    ) async throws -> TestServer.Reply {
        var members: [(name: String, value: JSONValue)] = [
            ("account", .string(name.description)), ("ke1", encoded(ke1)), ("device", deviceMembers),
        ]
        if let proof {
            members.append(("proof", ["time": .integer(proof.time), "signature": encoded(proof.signature)]))
        }
        return try await server.call("login/start", .object(members), as: credentials, from: peer)
    }

    /// Starts, and makes the finish of it; `assumed` is what the client thinks it is bound to, where a test
    /// lets that differ from what it sent.
    func beginLogin(assuming assumed: LoginBinding? = nil) async throws -> Finishing {
        let client = try ClientLogin(try secret())
        let ke1 = client.ke1.bytes
        let reply = try await start(ke1)
        try #require(reply.status == 200, "\(reply.refusal?.detail ?? "")")
        return try finish(client, reply, assumed ?? binding)
    }

    func finish(
        _ client: consuming ClientLogin, _ reply: TestServer.Reply, _ binding: LoginBinding,
        _ purpose: LoginBinding.Purpose = .login, more: [[UInt8]] = []
    ) throws -> Finishing {
        let (ke1, ke2) = (client.ke1.bytes, try #require(reply.bytes("ke2")))
        let loggedIn = try client.finish(
            try KE2(ke2), as: try #require(binding.parties), context: try #require(binding.context),
            stretching: stretching)
        let loginID = try #require(reply.bytes("login_id"))
        let keys = LoginKeys(sessionKey: loggedIn.sessionKey)
        let transcript = binding.finishTranscript(
            purpose, loginID: loginID, ke1: ke1, ke2: ke2, ke3: loggedIn.ke3.bytes, more: more)
        let signed = signing.sign(transcript.span)
        let signature = try #require(signed)
        let mac = keys.finish.authenticate((transcript + signature).span)
        return Finishing(
            loginID: loginID, ke3: loggedIn.ke3.bytes, signature: signature, mac: mac.indices.map { mac[$0] },
            requestKey: keys.root.requestKey)
    }

    @discardableResult
    func logIn() async throws -> TestServer.Reply {
        let finishing = try await beginLogin()
        return try await server.call("login/finish", finishing.body, as: credentials, from: peer)
    }

    /// Signs in, and returns the credentials of the session.
    func session() async throws -> Credentials {
        let finishing = try await beginLogin()
        let reply = try await server.call("login/finish", finishing.body, as: credentials, from: peer)
        return try finishing.session(reply, credentials)
    }

    // MARK: Another password

    /// A change of password between its two steps.
    struct Changing {
        var record: Registering
        var finishing: Finishing

        var body: JSONValue {
            .object(
                finishing.members + [
                    ("handle", encoded(record.handle)), ("sealed_record", encoded(record.sealedRecord)),
                ])
        }
    }

    func beginChange(to password: String, from session: Credentials, code: String? = nil) async throws
        -> Changing
    {
        var successor = self
        successor.password = password
        let registration = try ClientRegistration(try successor.secret())
        let login = try ClientLogin(try secret())
        let reply = try await server.call(
            "password/start",
            ["ke1": encoded(login.ke1.bytes), "request": encoded(registration.request.bytes)], as: session)
        try #require(reply.status == 200, "\(reply.refusal?.detail ?? "")")
        let record = try successor.seal(registration, reply, code)
        let digest = SHA256.digest(record.sealedRecord.span)
        let id = SessionToken(session.keyID.bytes).map(\.id.bytes)
        let finishing = try finish(
            login, reply, binding, .passwordChange,
            more: [try #require(id), digest.indices.map { digest[$0] }])
        return Changing(record: record, finishing: finishing)
    }

    func change(to password: String, from session: Credentials) async throws -> TestServer.Reply {
        let changing = try await beginChange(to: password, from: session)
        return try await server.call("password/finish", changing.body, as: session)
    }
}
