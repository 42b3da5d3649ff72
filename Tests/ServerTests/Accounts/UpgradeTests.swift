import CountersignAuthority
import CountersignGate
import CountersignOpaque
import CountersignSchemes
import CountersignSeal
import CountersignWire
import Testing

@testable import CountersignServer

/// Accounts that a login upgrades from the ladder to OPAQUE. Over HTTP: Tests/Interop/test_login_ladder.py.
@Suite struct UpgradeTests {
    private let server: TestServer
    private let signIn: any LegacyPasswordLogin
    private let app: AppName

    init() throws {
        server = try TestServer(policy: [
            "legacy-login=on", "legacy-upgrade=on", "legacy-salt=s", "legacy-key=k", "password-login=on",
            "password-min=1",
        ])
        signIn = server.accounts.services.legacyLogins.signIn
        app = try #require(AppName("demo"))
    }

    private func add(_ name: String, on rung: Rung) throws -> AccountName {
        let name = try AccountName(normalizing: name)
        let password = Secret(copying: Array("pw".utf8).span)
        _ = try server.deployment.addLegacyAccount(
            name, of: app, on: rung, password: password, userID: nil, at: server.clock.now)
        return name
    }

    @Test("an administrator's password for a rung is judged by the app's rule")
    func rule() throws {
        try server.deployment.setPolicy(["password-min=8"], of: app)
        #expect(throws: OperationalError.self) { try add("short", on: .base64) }
        #expect(try server.deployment.store.account(AccountName(normalizing: "short"), of: app) == nil)
    }

    private func logIn(_ name: AccountName, _ sent: String, at door: Rung.LoginEndpoint) throws
        -> LegacyLoginService.Accepted?
    {
        let legacy = try #require(try LegacyApps(server.deployment).app(named: "demo"))
        let attempt = LegacyLoginAttempt(
            legacy, username: name.bytes, password: PasswordField(Array(sent.utf8).span), at: door)
        return try signIn.judge(try #require(attempt), at: server.clock.now)
    }

    @Test("a password that was proved becomes a registration, once, which its owner's new app signs in by")
    func moves() async throws {
        let name = try add("bob", on: .base64)
        #expect(try logIn(name, "cHg=", at: .form) == nil)
        let accepted = try #require(try logIn(name, "cHc=", at: .form))
        let registration = try #require(accepted.registration)
        var bob = try TestClient(server, "bob", "pw")
        bob.stretching = .standard
        let enrolment = server.accounts.services.enrolment
        try server.change(name, .lock)
        #expect(try await enrolment.upgrade(accepted.account, to: registration, at: server.clock.now) == nil)
        try server.change(name, .unlock)
        let upgraded = try await enrolment.upgrade(accepted.account, to: registration, at: server.clock.now)
        #expect(upgraded?.userID == accepted.account.userID && upgraded?.legacy == nil)
        #expect(try server.deployment.store.account(accepted.account.number) == upgraded)
        #expect(try await bob.logIn().status == 200)
        #expect(try logIn(name, "cHc=", at: .form) == nil)
        let again = try await enrolment.upgrade(accepted.account, to: registration, at: server.clock.now)
        #expect(again == nil, "what the login proved is gone")
    }

    private func send(_ name: String, _ password: String) async throws -> TestServer.Reply {
        let device: JSONValue = ["class": "desktop", "name": "browser"]
        return try await server.call(
            "login/password", ["account": .string(name), "password": .string(password), "device": device])
    }

    @Test("a password that is sent opens any rung, and moves its account", arguments: Rung.allCases)
    func movesBySentPassword(_ rung: Rung) async throws {
        let name = try add("bob", on: rung)
        let (wrong, nobody) = (try await send("bob", "px"), try await send("nobody", "pw"))
        #expect(wrong.status == 401 && wrong.body == nobody.body)
        #expect(try server.deployment.store.account(name, of: app)?.legacy?.rung == rung)
        let reply = try await send("bob", "pw")
        #expect(reply.status == 200 && reply["token"]?.hasPrefix("b_") == true)
        #expect(try server.deployment.store.account(name, of: app)?.legacy == nil)
        var bob = try TestClient(server, "bob", "pw")
        bob.stretching = .standard
        #expect(try await bob.logIn().status == 200)
        #expect(try await send("bob", "pw").status == 200, "by its registration now")
        #expect(try await send("bob", "px").status == 401)
    }

    @Test("a sent password opens no rung of a locked account, nor where the app does not want it")
    func staysThoughSent() async throws {
        let name = try add("bob", on: .md5)
        try server.change(name, .lock)
        #expect(try await send("bob", "pw")["code"] == "wrong-credentials")
        try server.change(name, .unlock)
        try server.deployment.setPolicy(["legacy-upgrade=off"], of: app)
        #expect(try await send("bob", "pw")["code"] == "wrong-credentials")
        #expect(try server.deployment.store.account(name, of: app)?.legacy?.rung == .md5)
    }

    @Test("a digest, and an app that does not want it, give no registration")
    func stays() throws {
        let digested = try add("carol", on: .md5)
        #expect(
            try #require(try logIn(digested, "8fe4c11451281c094a6578e6ddbf5eed", at: .form)).registration
                == nil)
        let plain = try add("dave", on: .plainPost)
        #expect(try #require(try logIn(plain, "pw", at: .form)).registration != nil)
        try server.deployment.setPolicy(["legacy-upgrade=off"], of: app)
        #expect(try #require(try logIn(plain, "pw", at: .form)).registration == nil)
    }
}
