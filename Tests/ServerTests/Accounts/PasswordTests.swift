import CountersignAuthority
import CountersignHandshake
import CountersignOpaque
import CountersignSchemes
import CountersignSeal
import CountersignWire
import Testing

@testable import CountersignServer

/// Password changes in a session and by a reset code, and logins with a sent password.
@Suite struct PasswordTests {
    @Test("a change of password takes the old one and the device, and ends the other sessions")
    func change() async throws {
        let server = try TestServer(policy: ["registration=open", "slots=unlimited"])
        let bob = try TestClient(server, "bob", "old and gone")
        try await bob.signUp()
        let session = try await bob.session()
        let other = try await TestClient(server, "bob", "old and gone", on: "tablet").session()
        let reply = try await bob.change(to: "new", from: session)
        #expect(reply.status == 200 && reply.body == Array("{}\n".utf8))
        await #expect(throws: OpaqueError.wrongPassword) { try await bob.logIn() }
        let renamed = try TestClient(server, "bob", "new")
        #expect(try await renamed.logIn().status == 200)
        #expect(try await server.call("password/start", [:], as: session)["code"] == "malformed")
        #expect(try await server.call("password/start", [:], as: other)["code"] == "session-ended")
    }

    @Test("a change whose record, session or signature is another's is refused, and changes nothing")
    func misbound() async throws {
        let server = try TestServer(policy: ["registration=open", "slots=unlimited"])
        let bob = try TestClient(server, "bob", "old and gone")
        try await bob.signUp()
        let session = try await bob.session()
        let changes: [(inout TestClient.Changing) -> Void] = [
            { $0.record.sealedRecord[40] ^= 1 }, { $0.record.handle[40] ^= 1 }, { $0.finishing.mac[0] ^= 1 },
            { $0.finishing.signature[9] ^= 1 }, { $0.finishing.ke3[9] ^= 1 },
        ]
        for change in changes {
            var changing = try await bob.beginChange(to: "new", from: session)
            change(&changing)
            let reply = try await server.call("password/finish", changing.body, as: session)
            #expect(reply.refusal?.code == .wrongCredentials || reply.refusal?.code == .malformed)
        }
        // Begun by one session, finished by another of the same account.
        let second = try await TestClient(server, "bob", "old and gone", on: "tablet").session()
        let begun = try await bob.beginChange(to: "new", from: session)
        #expect(
            try await server.call("password/finish", begun.body, as: second)["code"] == "wrong-credentials")
        // A login begun for a change does not sign in, and a usual login does not authorize a change.
        let changing = try await bob.beginChange(to: "new", from: session)
        #expect(try await server.call("login/finish", changing.finishing.body)["code"] == "wrong-credentials")
        #expect(try await bob.logIn().status == 200)
    }

    @Test("a reset code sets a password once, within its time, and ends every session")
    func reset() async throws {
        let server = try TestServer(policy: [])
        let app = try #require(AppName("demo"))
        let old = try TestClient(server, "bob", "old and gone")
        let given = Secret(copying: Array("old and gone".utf8).span)
        _ = try server.deployment.addAccount(old.name, of: app, password: given, at: server.clock.now)
        var signer = old
        signer.stretching = .standard
        let session = try await signer.session()
        let (code, until) = try server.deployment.resetAccount(old.name, of: app, at: server.clock.now)
        #expect(until == server.clock.now + 3_600)
        let new = try TestClient(server, "bob", "new")
        #expect(try await new.signUp(code: ResetCode().text)["code"] == "wrong-credentials")
        #expect(try await server.call("password/start", [:], as: session)["code"] == "malformed")
        #expect(try await new.signUp(code: code.text.lowercased()).status == 200)
        #expect(try await new.logIn().status == 200)
        #expect(try await server.call("password/start", [:], as: session)["code"] == "session-ended")
        #expect(try await new.signUp(code: code.text)["code"] == "wrong-credentials")
        let (late, _) = try server.deployment.resetAccount(
            old.name, of: app, lifetime: 60, at: server.clock.now)
        server.clock.now += 60
        #expect(try await new.signUp(code: late.text)["code"] == "wrong-credentials")
        let nobody = try TestClient(server, "nobody")
        #expect(try await nobody.signUp(code: late.text)["code"] == "wrong-credentials")
    }

    @Test("a locked account stays as it is; a code for it is good once it is let in again")
    func lockedReset() async throws {
        let server = try TestServer()
        let old = try TestClient(server, "bob", "old and gone")
        try await old.signUp()
        let app = try #require(AppName("demo"))
        let (code, _) = try server.deployment.resetAccount(old.name, of: app, at: server.clock.now)
        try server.change(old.name, .lock)
        let locked = try server.deployment.store.account(old.name, of: app)
        let new = try TestClient(server, "bob", "new")
        #expect(try await new.signUp(code: code.text)["code"] == "forbidden")
        #expect(try await new.signUp(code: ResetCode().text)["code"] == "wrong-credentials")
        #expect(try server.deployment.store.account(old.name, of: app) == locked)
        try server.change(old.name, .unlock)
        #expect(try await new.signUp(code: code.text).status == 200)
        #expect(try await new.logIn().status == 200)
    }

    @Test("the device that sets a password by a code is known, and signs in while strangers are refused")
    func resetDevice() async throws {
        var few = LoginSettings.unlimited
        few.account = RateLimit(burst: 2, refillInterval: .seconds(60))
        few.work = RateLimit(burst: 100, refillInterval: .seconds(1))
        let server = try TestServer(logins: few)
        let (phone, tablet) = (
            try TestClient(server, "bob", "new"), try TestClient(server, "bob", "old", on: "tablet")
        )
        try await tablet.signUp()
        #expect(try await tablet.logIn().status == 200)
        let app = try #require(AppName("demo"))
        let account = try #require(try server.deployment.store.account(phone.name, of: app))
        func known() throws -> [[UInt8]] {
            try server.deployment.store.knownDevices(of: account.number).map(\.device.signingKey)
        }
        #expect(try known() == [tablet.device.signingKey.bytes])
        let (code, _) = try server.deployment.resetAccount(phone.name, of: app, at: server.clock.now)

        // A device whose proof was altered, or moved from another registration, is refused; the code stays
        // good.
        let registering = try await phone.beginRegistration(code: code.text)
        let device = try phone.resetDevice(registering, code: code.text)
        let elsewhere = try phone.resetDevice(
            try await phone.beginRegistration(code: code.text), code: code.text)
        let guessed = try phone.resetDevice(registering, code: ResetCode().text)
        let attacker = try TestClient(server, "bob", "new", on: "tv")
        let theirs = try attacker.resetDevice(registering, code: ResetCode().text)
        let stolen = theirs.replacing("mac", by: device)
        let renamed = device.replacing("name", by: theirs)
        for wrong in [elsewhere, guessed, stolen, renamed] {
            let body = JSONValue.object(registering.members + [("device", wrong)])
            #expect(try await server.call("registration/finish", body)["code"] == "wrong-credentials")
        }
        let plain = try await TestClient(server, "eve").beginRegistration()
        let unwanted = JSONValue.object(plain.members + [("device", device)])
        #expect(try await server.call("registration/finish", unwanted)["code"] == "malformed")

        #expect(try await phone.reset(code: code.text).status == 200)
        #expect(try known() == [phone.device.signingKey.bytes], "the tablet is forgotten")
        var stranger = try TestClient(server, "bob")
        for attempt in 0..<3 {
            stranger.peer = "198.51.100.\(attempt):1"
            _ = try await stranger.start(
                [UInt8](ClientLogin(try #require(Password(Secret(random: 8)))).ke1.bytes))
        }
        let ke1 = try ClientLogin(try #require(Password(Secret(random: 8)))).ke1.bytes
        func start(_ client: TestClient) async throws -> Int {
            let transcript = client.binding.startProof(ke1: ke1, time: server.clock.now)
            let made = client.signing.sign(transcript.span)
            let signature = try #require(made)
            return try await client.start(ke1, proof: (server.clock.now, signature)).status
        }
        #expect(try await start(tablet) == 429)
        #expect(try await start(phone) == 200)
    }

    @Test("a device is known as long as the password that it signed in by stands")
    func knownDevices() async throws {
        let server = try TestServer(policy: ["registration=open", "slots=unlimited"])
        let (phone, tablet) = (
            try TestClient(server, "bob", "old and gone"),
            try TestClient(server, "bob", "old and gone", on: "tablet")
        )
        try await phone.signUp()
        let app = try #require(AppName("demo"))
        let account = try #require(try server.deployment.store.account(phone.name, of: app))
        func known() throws -> [Bool] {
            try [phone, tablet].map { client in
                let device = KnownDevice(signingKey: client.device.signingKey.bytes, lastSeen: 0)
                return try server.deployment.store.knownDevice(device.id, of: account.number) != nil
            }
        }
        let session = try await phone.session()
        _ = try await tablet.session()
        #expect(try known() == [true, true])
        #expect(try await phone.change(to: "new", from: session).status == 200)
        #expect(try known() == [true, false], "the device that changed it stays")
        let (code, _) = try server.deployment.resetAccount(phone.name, of: app, at: server.clock.now)
        #expect(try await phone.signUp(code: code.text).status == 200)
        #expect(try known() == [false, false])
        #expect(try await phone.logIn().status == 200)
        #expect(try known() == [true, false])
        try server.change(phone.name, .legacy(LegacyCredential(rung: .md5, sealed: [1])))
        #expect(try known() == [false, false])
    }

    @Test(
        "a start that says that a code will come opens nothing without one, nor with one that is not sealed")
    func promised() async throws {
        let server = try TestServer(policy: [])
        let bob = try TestClient(server, "bob")
        let bare: JSONValue = ["account": "bob", "request": encoded([UInt8](repeating: 0, count: 32))]
        #expect(try await server.call("registration/start", bare)["code"] == "forbidden")
        var registering = try await bob.beginRegistration(code: ResetCode().text)
        #expect(
            try await server.call("registration/finish", registering.body)["code"] == "wrong-credentials",
            "there is no bob")
        registering = try await bob.beginRegistration(saying: .thatACodeWillCome)
        let reply = try await server.call("registration/finish", registering.body)
        #expect(reply["code"] == "forbidden")
        guard case .object(var members) = registering.body else { return }
        members.append(("reset_code", .string(ResetCode().text)))
        #expect(try await server.call("registration/finish", .object(members))["code"] == "forbidden")
        registering = try await bob.beginRegistration(code: "no code")
        #expect(try await server.call("registration/finish", registering.body)["code"] == "malformed")
    }

    @Test("a password is changed without a code")
    func changedWithACode() async throws {
        let server = try TestServer()
        let bob = try TestClient(server, "bob", "old and gone")
        try await bob.signUp()
        let session = try await bob.session()
        let changing = try await bob.beginChange(to: "new", from: session, code: ResetCode().text)
        #expect(try await server.call("password/finish", changing.body, as: session)["code"] == "malformed")
    }

    @Test("codes have a hundred bits, and are read as people type them")
    func codes() throws {
        let code = ResetCode()
        #expect(code.text.utf8.count == 24 && "\(code)" == "<reset code>")
        let spelled = code.text.lowercased().replacing("0", with: "o").replacing("1", with: "l").replacing(
            "-", with: " ")
        #expect(ResetCode(typed: spelled)?.hash == code.hash)
        #expect(Set((0..<100).map { _ in ResetCode().text }).count == 100)
        for text in [
            "", "AAAA-AAAA-AAAA-AAAA-AAA", code.text + "A", "UUUU-AAAA-AAAA-AAAA-AAAA", "é" + code.text,
        ] {
            #expect(ResetCode(typed: text) == nil)
        }
    }

    @Test("a password is sent where the policy lets it, over TLS, and opens what OPAQUE registered")
    func sent() async throws {
        let server = try TestServer(policy: ["registration=open", "password-login=on"])
        var bob = try TestClient(server, "bob", "sent")
        bob.stretching = .standard
        try await bob.signUp()
        func send(_ name: String, _ password: String, over transport: Request.Transport = .tls) async throws
            -> TestServer.Reply
        {
            let device: JSONValue = ["class": "desktop", "name": "browser"]
            return try await server.call(
                "login/password",
                ["account": .string(name), "password": .string(password), "device": device],
                over: transport)
        }
        let reply = try await send("bob", "sent")
        #expect(reply.status == 200 && reply["token"]?.hasPrefix("b_") == true)
        #expect(reply["login_token"]?.hasPrefix("l_") == true && reply.signer == nil)
        let (wrong, nobody) = (try await send("bob", "else"), try await send("nobody", "sent"))
        #expect(wrong["code"] == "wrong-credentials" && nobody.body == wrong.body)
        #expect(try await send("bob", "sent", over: .plain)["code"] == "forbidden")
        let closed = try TestServer()
        let answer = try await closed.call("login/password", ["account": "bob", "password": "x"])
        #expect(answer["code"] == "forbidden")
    }
}

extension JSONValue {
    /// The same object with one member of another.
    fileprivate func replacing(_ name: String, by other: JSONValue) -> JSONValue {
        guard case .object(let members) = self, case .object(let others) = other else { return self }
        return .object(members.map { $0.name == name ? others.first { $0.name == name } ?? $0 : $0 })
    }
}
