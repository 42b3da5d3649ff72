import CountersignAuthority
import CountersignHandshake
import CountersignOpaque
import CountersignSeal
import CountersignWire
import Testing

@testable import CountersignServer

@Suite struct LoginTests {
    @Test("a wrong password opens nothing, at the client")
    func wrongPassword() async throws {
        let server = try TestServer()
        var bob = try TestClient(server, "bob")
        try await bob.signUp()
        bob.password = "correct hors"
        await #expect(throws: OpaqueError.wrongPassword) { try await bob.logIn() }
    }

    @Test("a finish of which one bit was changed is refused, and the login with it")
    func changedFinishes() async throws {
        let server = try TestServer()
        let bob = try TestClient(server, "bob")
        try await bob.signUp()
        let changes: [(inout TestClient.Finishing) -> Void] = [
            { $0.loginID[0] ^= 1 }, { $0.ke3[0] ^= 1 }, { $0.ke3[63] ^= 1 }, { $0.signature[5] ^= 1 },
            { $0.mac[0] ^= 1 }, { $0.mac[31] ^= 1 },
        ]
        for change in changes {
            let good = try await bob.beginLogin()
            var changed = good
            change(&changed)
            let reply = try await server.call("login/finish", changed.body)
            // An id that was never given is answered like one that is over.
            let code = changed.loginID == good.loginID ? "wrong-credentials" : "login-expired"
            #expect(reply.status == 401 && reply["code"] == code && reply["detail"] == nil)
            if changed.loginID == good.loginID {
                #expect(try await server.call("login/finish", good.body)["code"] == "login-expired")
            }
        }
    }

    @Test("a device's signature by another key is refused, although its MAC holds")
    func anotherDevicesSignature() async throws {
        let server = try TestServer()
        let bob = try TestClient(server, "bob")
        try await bob.signUp()
        // Knows the password, and presents a device whose key is not its own.
        var thief = try TestClient(server, "bob")
        thief.device = bob.device
        #expect(try await thief.logIn()["code"] == "wrong-credentials")
    }

    @Test(
        "device, account, release and app are bound: a login fails if one differs between its ends"
    )
    func swapped() async throws {
        let server = try TestServer()
        let bob = try TestClient(server, "bob")
        try await bob.signUp()
        let other = try TestClient(server, "carol", on: "another")
        var swaps: [LoginBinding] = []
        for change in [
            { (device: inout Device) in device.signingKey = other.device.signingKey },
            { $0.agreementKey = other.device.agreementKey }, { $0.kind = .tablet },
            { $0.name = other.device.name },
        ] {
            var device = bob.device
            change(&device)
            swaps.append(LoginBinding(app: "demo", account: bob.name, release: "r_first", device: device))
        }
        swaps.append(LoginBinding(app: "demo", account: bob.name, release: "r_second", device: bob.device))
        swaps.append(LoginBinding(app: "other", account: bob.name, release: "r_first", device: bob.device))
        swaps.append(LoginBinding(app: "demo", account: other.name, release: "r_first", device: bob.device))
        for swap in swaps {
            // The server's binding differs from the client's: OPAQUE's check at the client detects it.
            await #expect(throws: OpaqueError.self) { try await bob.beginLogin(assuming: swap) }
        }
    }

    @Test("a login that one release began is not finished by another")
    func otherRelease() async throws {
        let server = try TestServer()
        let bob = try TestClient(server, "bob")
        try await bob.signUp()
        for credentials in [server.otherRelease, server.otherApp] {
            let finishing = try await bob.beginLogin()
            let reply = try await server.call("login/finish", finishing.body, as: credentials)
            #expect(reply["code"] == "wrong-credentials")
        }
    }

    @Test("the same name in two apps is two accounts")
    func apps() async throws {
        let server = try TestServer()
        let bob = try TestClient(server, "bob", "one")
        var elsewhere = try TestClient(server, "bob", "two")
        elsewhere.credentials = server.otherApp
        elsewhere.app = "other"
        #expect(try await bob.signUp().status == 200)
        #expect(try await elsewhere.signUp().status == 200)
        #expect(try await bob.logIn().status == 200)
        #expect(try await elsewhere.logIn().status == 200)
    }

    @Test("a login is finished once, and within a minute")
    func once() async throws {
        let server = try TestServer()
        let bob = try TestClient(server, "bob")
        try await bob.signUp()
        let finishing = try await bob.beginLogin()
        #expect(try await server.call("login/finish", finishing.body).status == 200)
        #expect(try await server.call("login/finish", finishing.body)["code"] == "login-expired")
        let slow = try await bob.beginLogin()
        server.clock.now += 59
        #expect(try await server.call("login/finish", slow.body).status == 200)
        let slower = try await bob.beginLogin()
        server.clock.now += 60
        let late = try await server.call("login/finish", slower.body)
        #expect(late.status == 401 && late["code"] == "login-expired" && late["detail"] == nil)
        // Nor does the answer tell whether there is an account, or whether the proof would have held.
        var (unknown, wrong) = (slower, try await bob.beginLogin())
        unknown.loginID = [UInt8](repeating: 7, count: 16)
        wrong.mac[0] ^= 1
        server.clock.now += 60
        for finishing in [unknown, wrong] {
            let reply = try await server.call("login/finish", finishing.body)
            #expect(reply.status == 401 && reply["code"] == "login-expired" && reply["detail"] == nil)
        }
    }

    @Test("a locked account is told to who knows the password, and to nobody else")
    func locked() async throws {
        let server = try TestServer()
        let bob = try TestClient(server, "bob")
        try await bob.signUp()
        try server.change(bob.name, .lock)
        let finishing = try await bob.beginLogin()
        var wrong = try await bob.beginLogin()
        wrong.mac[0] ^= 1
        #expect(try await server.call("login/finish", wrong.body)["code"] == "wrong-credentials")
        let reply = try await server.call("login/finish", finishing.body)
        #expect(reply.status == 403 && reply["code"] == "forbidden")
        try server.change(bob.name, .unlock)
        #expect(try await bob.logIn().status == 200)
        try server.change(bob.name, .remove)
        await #expect(throws: OpaqueError.wrongPassword) { try await bob.logIn() }
    }

    @Test("an agreement key that is no point on the curve is refused")
    func agreementKey() async throws {
        let server = try TestServer()
        var bob = try TestClient(server, "bob")
        try await bob.signUp()
        bob.device.agreementKey = try #require(P256Point([4] + [UInt8](repeating: 7, count: 64)))
        #expect(try await bob.logIn()["code"] == "malformed")
    }

    @Test("an administrator's password works as one that was registered")
    func administrators() async throws {
        let server = try TestServer(policy: [])
        let bob = try TestClient(server, "bob", "given away")
        let app = try #require(AppName("demo"))
        let password = Secret(copying: Array("given away".utf8).span)
        _ = try server.deployment.addAccount(bob.name, of: app, password: password, at: server.clock.now)
        let login = server.accounts.services.login
        #expect(try login.prove(password, of: bob.name, in: app).account.name == bob.name)
        let wrong = Secret(copying: Array("taken".utf8).span)
        #expect(throws: Login.wrongCredentials) { try login.prove(wrong, of: bob.name, in: app) }
        let nobody = try AccountName(normalizing: "nobody")
        #expect(throws: Login.wrongCredentials) { try login.prove(password, of: nobody, in: app) }
        try server.change(bob.name, .lock)
        let refusal = #expect(throws: Refusal.self) { try login.prove(password, of: bob.name, in: app) }
        #expect(refusal?.code == .forbidden)
    }
}
