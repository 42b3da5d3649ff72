import CountersignAuthority
import CountersignHandshake
import CountersignSchemes
import CountersignSeal
import CountersignWire
import Testing

@testable import CountersignServer

@Suite struct SignUpTests {
    @Test("who signed up signs in, and both ends have one key")
    func whole() async throws {
        let server = try TestServer()
        let bob = try TestClient(server, "bob")
        #expect(try await bob.signUp()["account"] == "bob")
        let finishing = try await bob.beginLogin()
        let reply = try await server.call("login/finish", finishing.body)
        #expect(reply.status == 200 && reply["account"] == "bob")
        #expect(reply["token"] == reply.signer?.keyID.description && reply["slots"] == "single")
        // The response is signed for the session that the client computes, whose key signs its requests.
        let session = try finishing.session(reply, server.release)
        let asked = try await server.call("password/start", [:], as: session)
        #expect(asked["detail"]?.contains("`ke1`") == true)
    }

    @Test("a name is taken once, and who begins again under it learns nothing of the record that stands")
    func taken() async throws {
        let server = try TestServer()
        let bob = try TestClient(server, "bob")
        try await bob.signUp()
        let mallory = try TestClient(server, "bob", "another")
        let reply = try await mallory.signUp()
        #expect(reply.status == 409 && reply["code"] == "name-taken")
        #expect(try await bob.logIn().status == 200)
        // One blinded password, evaluated twice: under two keys, and under neither of them twice.
        let request = encoded([UInt8](try #require(Base64.decode(Self.element, as: .url))))
        let first = try await server.call("registration/start", ["account": "bob", "request": request])
        let second = try await server.call("registration/start", ["account": "bob", "request": request])
        #expect(first.status == 200)
        #expect(first.bytes("response")?.prefix(32) != second.bytes("response")?.prefix(32))
        #expect(first.bytes("response")?.suffix(32) == second.bytes("response")?.suffix(32))
    }

    /// The generator of ristretto255, which is an element like any other. Source: RFC 9496, appendix A.1.
    private static let element = "4vKuCmq8TnGohKlhxQBRX1jjC2qlgt2NtqZZReCNLXY"

    @Test("composed and decomposed letters are one account; what is not in the one spelling is refused")
    func names() async throws {
        let server = try TestServer()
        let composed = try TestClient(server, "Zo\u{EB}")
        #expect(try await composed.signUp()["account"] == "zo\u{EB}")
        let decomposed = try TestClient(server, "Zoe\u{308}")
        #expect(try await decomposed.signUp().status == 409)
        #expect(try await decomposed.logIn().status == 200)
        let request = encoded([UInt8](try #require(Base64.decode(Self.element, as: .url))))
        for name in ["", "Bob", "zoe\u{308}", "b\u{0}b", " bob", "a  b", String(repeating: "x", count: 129)] {
            let reply = try await server.call(
                "registration/start", ["account": .string(name), "request": request])
            #expect(reply.status == 400 && reply["code"] == "malformed", "\(name)")
            #expect(reply["detail"]?.contains("account") == true)
        }
    }

    @Test("a handle is good for its name, app and ten minutes")
    func handles() async throws {
        let server = try TestServer()
        let bob = try TestClient(server, "bob")
        let carol = try TestClient(server, "carol")
        var stolen = try await bob.beginRegistration()
        stolen.account = "carol"
        #expect(try await server.call("registration/finish", stolen.body)["code"] == "malformed")
        var swapped = try await carol.beginRegistration()
        swapped.handle = try await bob.beginRegistration().handle
        #expect(try await server.call("registration/finish", swapped.body)["code"] == "malformed")
        // Of the other app's account of the same name.
        let registering = try await bob.beginRegistration()
        let elsewhere = try await server.call("registration/finish", registering.body, as: server.otherApp)
        #expect(elsewhere["code"] == "malformed")
        server.clock.now += 600
        let late = try await server.call("registration/finish", registering.body)
        #expect(late["code"] == "malformed" && late["detail"]?.contains("run out") == true)
        #expect(try await bob.signUp().status == 200)
    }

    @Test("a record that was changed on its way is none")
    func changedRecords() async throws {
        let server = try TestServer()
        let bob = try TestClient(server, "bob")
        for index in [0, 31, 32, 200, 239] {
            var registering = try await bob.beginRegistration()
            registering.sealedRecord[index] ^= 1
            #expect(try await server.call("registration/finish", registering.body)["code"] == "malformed")
        }
        var short = try await bob.beginRegistration()
        short.sealedRecord.removeLast()
        #expect(try await server.call("registration/finish", short.body)["code"] == "malformed")
        #expect(try await bob.signUp().status == 200)
    }

    @Test("where administrators make the accounts, nobody else does")
    func closed() async throws {
        let server = try TestServer(policy: [])
        let bob = try TestClient(server, "bob")
        let request = encoded([UInt8](try #require(Base64.decode(Self.element, as: .url))))
        let reply = try await server.call("registration/start", ["account": "bob", "request": request])
        #expect(reply.status == 403 && reply["code"] == "forbidden")
        let app = try #require(AppName("demo"))
        let password = Secret(copying: Array("given away".utf8).span)
        _ = try server.deployment.addAccount(bob.name, of: app, password: password, at: server.clock.now)
        #expect(throws: OperationalError.self) {
            try server.deployment.addAccount(bob.name, of: app, password: nil, at: server.clock.now)
        }
    }

    @Test("each sign-up and each change is in the audit log, by the account itself")
    func audit() async throws {
        let server = try TestServer()
        try await TestClient(server, "bob").signUp()
        let records = try server.deployment.auditRecords(last: 1).map {
            String(decoding: $0.record, as: UTF8.self)
        }
        #expect(records.first?.contains(#""action":"account.register""#) == true)
        let name = try AccountName(normalizing: "bob")
        let account = try server.deployment.account(name, of: #require(AppName("demo")))
        let pseudonym = try #require(account.pseudonym)
        let actor = #""actor":{"kind":"account","app":"demo","pseudonym":"\#(pseudonym)"}"#
        #expect(records.first?.contains(actor) == true)
    }
}
