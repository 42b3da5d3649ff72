@testable import CountersignAuthority
import CountersignHTTP
import CountersignHandshake
import CountersignOpaque
import CountersignSchemes
import CountersignSeal
import CountersignThreads
import CountersignWire
import Testing

@testable import CountersignServer

/// Login limits, and the equal treatment of names without an account.
@Suite struct GuessTests {
    private static let few: LoginSettings = {
        var settings = LoginSettings.unlimited
        settings.account = RateLimit(burst: 3, refillInterval: .seconds(60))
        settings.address = RateLimit(burst: 5, refillInterval: .seconds(10))
        settings.device = RateLimit(burst: 2, refillInterval: .seconds(30))
        settings.work = RateLimit(burst: 3, refillInterval: .seconds(30))
        return settings
    }()

    private func start(_ client: TestClient) async throws -> TestServer.Reply {
        try await client.start(try ClientLogin(try #require(Password(Secret(random: 8)))).ke1.bytes)
    }

    /// A login start that the device signs.
    private func signedStart(_ client: TestClient, at time: Int64, ke1: [UInt8]? = nil) async throws
        -> TestServer.Reply
    {
        let ke1 = try ke1 ?? ClientLogin(try #require(Password(Secret(random: 8)))).ke1.bytes
        let transcript = client.binding.startProof(ke1: ke1, time: time)
        let signature = client.signing.sign(transcript.span)
        return try await client.start(ke1, proof: (time, try #require(signature)))
    }

    @Test("each start is a guess, whether or not there is such an account; a verified finish takes it back")
    func counted() async throws {
        let server = try TestServer(logins: GuessTests.few)
        let bob = try TestClient(server, "bob")
        try await bob.signUp()
        for _ in 0..<20 { #expect(try await bob.logIn().status == 200) }
        for name in ["bob", "nobody"] {
            for attempt in 0..<4 {
                var client = try TestClient(server, name)
                client.peer = "198.51.100.\(attempt):1"
                let reply = try await start(client)
                #expect(reply.status == (attempt < 3 ? 200 : 429), "\(name) \(attempt)")
                guard attempt == 3 else { continue }
                #expect(reply["code"] == "too-many-attempts")
                #expect(reply.fields.contains { $0.name == "Retry-After" && $0.value == "60" })
            }
        }
        server.clock.now += 60
        #expect(try await bob.logIn().status == 200)
    }

    @Test("an address tries so many names, and signs up so many accounts")
    func byAddress() async throws {
        let server = try TestServer(logins: GuessTests.few)
        for attempt in 0..<6 {
            #expect(
                try await start(try TestClient(server, "user \(attempt)")).status == (attempt < 5 ? 200 : 429)
            )
        }
        var elsewhere = try TestClient(server, "bob")
        elsewhere.peer = "[2001:db8::1]:443"
        for attempt in 0..<5 {
            elsewhere.name = try AccountName(normalizing: "user \(attempt)")
            #expect(try await elsewhere.signUp().status == 200)
        }
        elsewhere.peer = "[2001:db8::2]:443"
        let element = encoded(try ClientRegistration(try #require(Password(Secret(random: 8)))).request.bytes)
        let body: JSONValue = ["account": "user 6", "request": element]
        #expect(try await server.call("registration/start", body, from: elsewhere.peer).status == 429)
        elsewhere.peer = "[2001:db8:0:1::2]:443"
        elsewhere.name = try AccountName(normalizing: "user 6")
        #expect(try await elsewhere.signUp().status == 200)
    }

    @Test(
        "a device that the account knows signs in while strangers are locked out, and its proof is good once")
    func knownDevice() async throws {
        let server = try TestServer(logins: GuessTests.few)
        let bob = try TestClient(server, "bob")
        try await bob.signUp()
        #expect(try await bob.logIn().status == 200)
        var stranger = try TestClient(server, "bob")
        for attempt in 0..<4 {
            stranger.peer = "198.51.100.\(attempt):1"
            _ = try await start(stranger)
        }
        #expect(try await start(bob).status == 429)
        let now = server.clock.now
        let ke1 = try ClientLogin(try #require(Password(Secret(random: 8)))).ke1.bytes
        #expect(try await signedStart(bob, at: now, ke1: ke1).status == 200)
        // The same proof again, a stale proof, and a proof of an unknown device.
        #expect(try await signedStart(bob, at: now, ke1: ke1).status == 429)
        #expect(try await signedStart(bob, at: now - 61).status == 429)
        #expect(try await signedStart(stranger, at: now).status == 429)
        var thief = stranger
        thief.device.signingKey = bob.device.signingKey
        #expect(try await signedStart(thief, at: now).status == 429)
        // The known device's own limit applies, too.
        #expect(try await signedStart(bob, at: now + 1).status == 200)
        #expect(try await signedStart(bob, at: now + 2).status == 429)
    }

    @Test("a device that was forgotten with its session is a stranger, until it signs in again")
    func forgottenDevice() async throws {
        let server = try TestServer(logins: GuessTests.few)
        let bob = try TestClient(server, "bob")
        try await bob.signUp()
        _ = try await bob.session()
        var stranger = try TestClient(server, "bob")
        for attempt in 0..<4 {
            stranger.peer = "198.51.100.\(attempt):1"
            _ = try await start(stranger)
        }
        let now = server.clock.now
        #expect(try await signedStart(bob, at: now).status == 200)
        let app = try #require(AppName("demo"))
        let account = try #require(try server.deployment.store.account(bob.name, of: app))
        let session = try #require(try server.deployment.store.sessions(of: account.number).first)
        #expect(try server.deployment.revokeSession(session.id, at: now).didForgetDevice)
        #expect(try await signedStart(bob, at: now + 1).status == 429)
        server.clock.now += 61
        #expect(try await bob.logIn().status == 200)
        #expect(try await signedStart(bob, at: server.clock.now).status == 200)
    }

    @Test("a proof that does not hold is counted before it is looked at; one that holds is not counted")
    func proofs() async throws {
        var settings = LoginSettings.unlimited
        settings.account = RateLimit(burst: 1, refillInterval: .seconds(86_400))
        settings.work = RateLimit(burst: 2, refillInterval: .seconds(10))
        let server = try TestServer(logins: settings)
        let bob = try TestClient(server, "bob")
        try await bob.signUp()
        #expect(try await bob.logIn().status == 200)
        #expect(try await start(bob).status == 200)
        // From here on only a known device is admitted.
        let now = server.clock.now
        for attempt in 0..<5 { #expect(try await signedStart(bob, at: now + Int64(attempt)).status == 200) }
        let stranger = try TestClient(server, "bob")
        for attempt in 0..<2 {
            #expect(try await signedStart(stranger, at: now + Int64(attempt)).status == 429)
        }
        #expect(
            try await signedStart(bob, at: now + 5).status == 429, "no proof from here is looked at any more")
        var elsewhere = bob
        elsewhere.peer = "198.51.100.7:1"
        #expect(try await signedStart(elsewhere, at: now + 6).status == 200)
        server.clock.now += 10
        #expect(try await signedStart(bob, at: now + 7).status == 200)
    }

    @Test("strangers of a carrier's /48 do not keep known devices of the /48 out by proofs that do not hold")
    func proofsOfNetwork() async throws {
        var settings = LoginSettings.unlimited
        settings.account = RateLimit(burst: 1, refillInterval: .seconds(86_400))
        settings.work = RateLimit(burst: 3, refillInterval: .seconds(30))
        let server = try TestServer(logins: settings)
        var bob = try TestClient(server, "bob")
        try await bob.signUp()
        #expect(try await bob.logIn().status == 200)
        #expect(try await start(bob).status == 200)
        // From here on only a known device is admitted.
        bob.peer = "[2001:db8:1:ff00::1]:1"
        for second in 0..<5 {
            let now = server.clock.now
            for subscriber in 0..<3 {
                var stranger = try TestClient(server, "bob")
                stranger.peer = "[2001:db8:1:\(subscriber)00::1]:1"
                for attempt in 0..<3 {
                    #expect(try await signedStart(stranger, at: now + Int64(attempt)).status == 429)
                }
            }
            server.clock.now += 1
            #expect(try await signedStart(bob, at: server.clock.now).status == 200, "\(second)")
        }
    }

    /// The solution of what the server offers.
    private func solve(_ offer: WorkOffer) throws -> LoginWork.Solution {
        let puzzles = try #require(
            WorkPuzzles(challenge: offer.challenge, puzzles: offer.puzzles, hashes: offer.hashes))
        var numbers: [UInt8] = []
        for puzzle in 0..<offer.puzzles {
            var attempt = puzzles.attempt(at: puzzle)
            var number: UInt64 = 0
            while !attempt.solves(number) { number += 1 }
            numbers += WorkPuzzles.Attempt.bytes(number)
        }
        return LoginWork.Solution(challenge: offer.challenge, numbers: numbers)
    }

    private func address(_ last: UInt8) throws -> ClientAddress {
        let bytes = [203, 0, 113, last]
        let address = ClientAddress(bytes.span)
        return try #require(address)
    }

    @Test("a solution that a limit or a full queue turns away can be brought again, and is good once")
    func solutionTurnedAway() async throws {
        var settings = GuessTests.few
        settings.account = RateLimit(burst: 1, refillInterval: .seconds(86_400))
        let server = try TestServer(logins: settings)
        let services = server.accounts.services
        let app = try #require(AppName("demo"))
        let bob = try AccountName(normalizing: "bob")
        let now = server.clock.now
        let busy = try address(1)
        let other = try address(2)
        func bring(
            _ solution: LoginWork.Solution?, from address: ClientAddress, failing: Refusal? = nil
        ) async throws -> Refusal? {
            do throws(Refusal) {
                return try await services.withGuessDebited(
                    by: .stranger(address), bringing: solution, account: bob, of: app, at: now
                ) { (_) throws(Refusal) -> Refusal? in
                    if let failing { throw failing }
                    return nil
                }
            } catch { return error }
        }
        #expect(try await bring(nil, from: busy) == nil)
        let offer = try #require(try await bring(nil, from: other)?.work, "for the account")
        let solution = try solve(offer)
        // The address has used up its solutions; starts without work do not count there.
        for _ in 0..<6 { _ = try await bring(nil, from: busy) }
        let carol = try AccountName(normalizing: "carol")
        #expect(services.limits.startSolved(app: app, account: carol, from: busy, at: now * 1000).isAllowed)
        let turnedAway = try await bring(solution, from: busy)
        #expect(turnedAway?.code == .tooManyAttempts && turnedAway?.work == nil)
        let full = Refusal(.unavailable, detail: "full", retryAfter: 1)
        #expect(try await bring(solution, from: other, failing: full)?.code == .unavailable)
        #expect(try await bring(solution, from: other) == nil)
        let third = try address(3)
        #expect(try await bring(solution, from: third)?.code == .tooManyAttempts, "good once")
        #expect(services.limits.solutionsUsed(app: app, account: bob, at: now * 1000) == 1)
    }

    @Test(
        "a registration finish is debited to its address before decryption, and refunded on success"
    )
    func registrationFinishes() async throws {
        var settings = LoginSettings.unlimited
        settings.work = RateLimit(burst: 3, refillInterval: .seconds(600))
        let server = try TestServer(logins: settings)
        let bob = try TestClient(server, "bob")
        var registering = try await bob.beginRegistration()
        #expect(try await server.call("registration/finish", registering.body).status == 200)
        registering.sealedRecord[40] ^= 1
        for attempt in 0..<4 {
            let reply = try await server.call("registration/finish", registering.body)
            #expect(reply["code"] == (attempt < 3 ? "malformed" : "too-many-attempts"), "\(attempt)")
        }
    }

    @Test("what could not be tried costs nothing")
    func unavailable() async throws {
        var settings = LoginSettings.unlimited
        settings.work = RateLimit(burst: 1, refillInterval: .seconds(86_400))
        let server = try TestServer(logins: settings)
        let registering = try await TestClient(server, "bob").beginRegistration()
        server.accounts.services.steps.stop()
        for _ in 0..<5 {
            #expect(try await server.call("registration/finish", registering.body)["code"] == "unavailable")
        }
    }

    @Test("strangers' wrong reset codes are counted against their addresses, and lock nobody out of a code")
    func resetCodes() async throws {
        let server = try TestServer(logins: GuessTests.few)
        var bob = try TestClient(server, "bob")
        try await bob.signUp()
        let app = try #require(AppName("demo"))
        let code = try server.deployment.resetAccount(bob.name, of: app, at: server.clock.now).code
        for attempt in 0..<20 {
            bob.peer = "198.51.100.\(attempt):1"
            #expect(try await bob.signUp(code: ResetCode().text)["code"] == "wrong-credentials")
        }
        bob.peer = "203.0.113.9:1"
        let guess = try await bob.beginRegistration(code: ResetCode().text)
        for expected in ["wrong-credentials", "wrong-credentials", "wrong-credentials", "too-many-attempts"] {
            #expect(
                try await server.call("registration/finish", guess.body, from: bob.peer)["code"] == expected)
        }
        bob.peer = "203.0.113.10:1"
        #expect(try await bob.signUp(code: code.text).status == 200)
    }

    @Test("wrong passwords that are sent are guesses")
    func otherGuesses() async throws {
        let server = try TestServer(policy: ["password-login=on"], logins: GuessTests.few)
        let device: JSONValue = ["class": "desktop", "name": "browser"]
        for attempt in 0..<4 {
            let reply = try await server.call(
                "login/password", ["account": "carol", "password": "x", "device": device],
                from: "203.0.113.\(attempt):1")
            #expect(reply["code"] == (attempt < 3 ? "wrong-credentials" : "too-many-attempts"))
        }
    }

    @Test("known, unknown, locked and ladder accounts are answered alike, byte for byte but for random ones")
    func alike() async throws {
        let server = try TestServer()
        for name in ["known", "locked"] { try await TestClient(server, name).signUp() }
        try server.change(try AccountName(normalizing: "locked"), .lock)
        let app = try #require(AppName("demo"))
        let ladder = AccountDraft(
            app: app, name: try AccountName(normalizing: "ladder"), userID: 7, created: 1, tombstones: nil)
        let draft = server.deployment.auditDraft(for: .accountAdd, on: .account(ladder.name, of: app))
        _ = try server.deployment.store.insert(ladder, recording: draft)
        var shapes: Set<String> = []
        for name in ["known", "locked", "ladder", "nobody"] {
            let client = try TestClient(server, name)
            let begun = try await start(client)
            let id = try #require(begun["login_id"])
            let finish = try await server.call(
                "login/finish",
                [
                    "login_id": .string(id), "ke3": encoded([UInt8](repeating: 1, count: 64)),
                    "signature": encoded([UInt8](repeating: 2, count: 64)),
                    "mac": encoded([UInt8](repeating: 3, count: 32)),
                ])
            #expect(begun.status == 200 && finish.status == 401)
            shapes.insert(shape(begun) + shape(finish))
            // For one blinded password, repeated login starts evaluate alike for each name: its key is
            // stable.
            let ke1 = try ClientLogin(try #require(Password(Secret(random: 8)))).ke1.bytes
            let (first, second) = (try await client.start(ke1), try await client.start(ke1))
            #expect(first.bytes("ke2")?.prefix(32) == second.bytes("ke2")?.prefix(32), "\(name)")
            #expect(first.bytes("ke2")?.dropFirst(32) != second.bytes("ke2")?.dropFirst(32))
        }
        #expect(shapes.count == 1, "\(shapes)")
    }

    /// The response without its random values: these members are represented by their length.
    private func shape(_ reply: TestServer.Reply) -> String {
        var body = String(decoding: reply.body, as: UTF8.self)
        for name in ["login_id", "ke2", "instance"] {
            if let value = reply[name] { body = body.replacing(value, with: "<\(value.utf8.count)>") }
        }
        return "\(reply.status) \(reply.fields.map { "\($0.name): \($0.value)" }) \(body)"
    }
}

extension LoginLimits.Decision {
    fileprivate var isAllowed: Bool { if case .allowed = self { true } else { false } }
}
