import ClientFakes
import CountersignOpaque
import CountersignSchemes
import CountersignSeal
import CountersignWire
import Testing

@testable import CountersignClient

/// From sign-up to sign-out, against an authority of the tests' own.
@Suite struct SessionTests {
    @Test func fromSignUpToSignOut() async throws {
        let world = try await FakeWorld()
        try await world.signUp()
        let login = try await world.logIn()
        #expect(login.account.description == "alice")
        let answer = try await world.calls.send(world.draft())
        #expect(answer.response.status == 200)
        #expect(answer.signer == KeyID(SessionToken(id: login.id, epoch: 0)))
        let outcome = try await LogOut(world.installation, environment: world.environment)()
        guard case .signedOut = outcome else { throw FakeAuthority.Problem.broken }
        #expect(try world.state.login == nil)
        // The device is known again by its keys.
        #expect(try world.state.keys != nil)
        await #expect(throws: ClientOperationError.self) { try await world.calls.send(world.draft()) }
    }

    @Test func aWrongPasswordChangesNothing() async throws {
        let world = try await FakeWorld()
        try await world.signUp()
        try await world.logIn()
        for (name, password) in [("alice", "wrong"), ("nobody", "correct horse")] {
            await #expect { try await world.logIn(name, password) } throws: { error in
                guard case ClientOperationError.wrongCredentials = error else { return false }
                return true
            }
        }
        #expect(try await world.calls.send(world.draft()).response.status == 200)
    }

    @Test func aLoginThatTookTooLongBeginsAnewOnce() async throws {
        let world = try await FakeWorld()
        try await world.signUp()
        await world.authority.expireLogins(1)
        #expect(try await world.logIn().account.description == "alice")
        #expect(try await world.calls.send(world.draft()).response.status == 200)
        await world.authority.expireLogins(2)
        await #expect { try await world.logIn() } throws: { error in
            guard case ClientOperationError.refused(let notice) = error else { return false }
            return notice.code == "login-expired" && notice.isGenuine
        }
        #expect(try await world.calls.send(world.draft()).response.status == 200, "the session stays")
        #expect(try await world.logIn().account.description == "alice")
    }

    @Test func aNameThatIsTakenIsRefused() async throws {
        let world = try await FakeWorld()
        try await world.signUp()
        await #expect { try await world.signUp("alice", "another") } throws: { error in
            guard case ClientOperationError.refused(let notice) = error else { return false }
            return notice.code == "name-taken" && notice.isGenuine
        }
        try await world.logIn()
    }

    @Test func aTokenThatRanOutIsRenewedUnseen() async throws {
        let world = try await FakeWorld()
        try await world.signUp()
        try await world.logIn()
        for epoch: UInt32 in 1...4 {
            await world.pass(FakeSession.lifetime)
            let answer = try await world.calls.send(world.draft("POST"))
            #expect(answer.response.status == 200)
            guard case .device(let session)? = try world.state.login?.session else {
                throw FakeAuthority.Problem.broken
            }
            #expect(session.current.number == epoch)
            #expect(session.successor == nil && session.attempt == nil)
        }
        #expect(await world.authority.refreshes == 4)
    }

    @Test func whatChangesSomethingBearsOneKeyThroughAllItsCopies() async throws {
        let world = try await FakeWorld()
        try await world.signUp()
        try await world.logIn()
        await world.pass(FakeSession.lifetime)
        await world.network.plan(.lost, at: "/orders")
        _ = try await world.calls.send(world.draft("POST"))
        #expect(await world.network.done == 1)
        let copies = await world.network.sent.filter { $0.target == Array("/orders".utf8) }
        #expect(copies.count == 3)
        let keys = copies.map { $0.fields.filter { $0.name == "Idempotency-Key" }.map(\.value) }
        #expect(Set(keys).count == 1 && keys[0].count == 1)
        // Each copy is signed for itself.
        #expect(Set(copies.map { $0.fields.first { $0.name == "Signature" }?.value }).count == 3)
        _ = try await world.calls.send(world.draft("GET"))
        #expect(await world.network.sent.last?.fields.contains { $0.name == "Idempotency-Key" } == false)
    }

    @Test func aWrongClockIsCorrectedByTheAuthoritysWord() async throws {
        var world = try await FakeWorld()
        world.time.set(by: -86_400)
        try await world.signUp()
        try await world.logIn()
        #expect(try world.state.clockOffset == 86_400)
        let before = await world.network.sent.count
        _ = try await world.calls.send(world.draft())
        #expect(await world.network.sent.count == before + 1)
        // The correction is stored for the next process, and corrected again if the clock has changed
        // meanwhile.
        try world.restart()
        world.time.set(by: 3_600)
        _ = try await world.calls.send(world.draft())
        #expect(await world.network.sent.count == before + 3)
        #expect(try world.state.clockOffset == 82_800)
        #expect(try await TimeRequest(world.installation, environment: world.environment)() == 82_800)
    }

    @Test func whoHoldsAnAnswerBackDoesNotMoveTheClock() async throws {
        let world = try await FakeWorld()
        world.time.set(by: -86_400)
        world.time.delay(5_000)
        let slow = world
        await #expect { try await slow.signUp() } throws: { error in
            guard case ClientOperationError.refused(let notice) = error else { return false }
            return notice.code == "stale" && notice.isGenuine
        }
        await #expect { try await TimeRequest(slow.installation, environment: slow.environment)() } throws: {
            error in
            guard case ClientOperationError.notGenuine = error else { return false }
            return true
        }
        #expect(try world.state.clockOffset == 0)
        world.time.delay(4_999)
        try await world.signUp()
        #expect(try world.state.clockOffset == 86_400)
    }

    @Test func aRegistrationGoesToNobodyElse() async throws {
        var world = try await FakeWorld()
        world.installation.authorityKey = SigningKey(try PrivateKey(random: .ed25519).publicKey)
        let deceived = world
        await #expect { try await deceived.signUp() } throws: { error in
            guard case ClientOperationError.notGenuine = error else { return false }
            return true
        }
        #expect(
            await world.network.sent.map { String(decoding: $0.target, as: UTF8.self) } == [
                "/countersign/v1/registration/start"
            ])
    }

    @Test(arguments: ["/login/start", "/login/finish"]) func aLoginThatIsTamperedWithIsNone(_ path: String)
        async throws
    {
        let world = try await FakeWorld()
        try await world.signUp()
        await world.network.plan(
            .answered { answer in
                var answer = answer
                answer.message.body[answer.message.body.count - 5] ^= 1
                return answer
            }, at: path)
        await #expect(throws: ClientOperationError.self) { try await world.logIn() }
        #expect(await world.network.done == 1)
        #expect(try world.state.login == nil)
        try await world.logIn()
    }

    @Test func withoutTheAuthoritysKeyNobodySignsUpOverAnyChannel() async throws {
        var world = try await FakeWorld()
        world.installation.authorityKey = nil
        await #expect { try await world.signUp() } throws: { error in
            guard case ClientOperationError.incomplete = error else { return false }
            return true
        }
        #expect(await world.network.sent.isEmpty)
        world.installation.channel = .pinned
        try await world.signUp()
        try await world.logIn()
    }

    /// What a backend once answered to the first copy of a request comes signed by the authority, and may say
    /// anything.
    @Test(arguments: ["session-ended", "token-expired", "stale"]) func anAnswerThatIsGivenAgainTeachesNothing(
        _ code: String
    ) async throws {
        let world = try await FakeWorld()
        try await world.signUp()
        try await world.logIn()
        await world.network.plan(.repeated(code), at: "/orders")
        let answered = try await world.calls.send(world.draft("POST"))
        #expect(await world.network.done == 1)
        #expect(
            answered.notice?.code == code && answered.notice?.isGenuine == false && answered.signer != nil)
        #expect(try world.state.login != nil && world.state.clockOffset == 0)
        #expect(await world.authority.refreshes == 0)
        #expect(try await world.calls.send(world.draft()).response.status == 200)
    }

    /// Servers sign refusals up to a budget for each address; beyond it they come as anybody could write
    /// them.
    @Test(
        arguments: [
            "session-ended", "token-expired", "stale", "update-required", "unknown-key", "bad-signature",
            "replayed", "too-many-attempts", "unavailable",
        ])
    func anUnsignedRefusalChangesNothing(_ code: String) async throws {
        let world = try await FakeWorld()
        try await world.signUp()
        let login = try await world.logIn()
        let told = Array(
            #"""
            {"code":"\#(code)","time":1900000000,"update_url":"https://evil.example","reason":"revoked",\#
            "at":1}
            """#
            .utf8
        )
        await world.network.plan(
            .answered { _ in Response(status: 401, fields: [], body: told) }, at: "/orders")
        let answered = try await world.calls.send(world.draft("POST"))
        #expect(await world.network.done == 1)
        #expect(answered.notice?.isGenuine != true)
        #expect(try world.state.login?.id == login.id && world.state.clockOffset == 0)
        #expect(await world.authority.refreshes == 0)
        #expect(try await world.calls.send(world.draft()).response.status == 200)
    }

    @Test func aCodeIsReadByTheAuthorityAlone() async throws {
        let world = try await FakeWorld()
        try await world.signUp()
        await #expect {
            try await world.signUp("alice", "another", resetCode: "AAAA-AAAA-AAAA-AAAA-AAAA")
        } throws: {
            guard case ClientOperationError.wrongCredentials = $0 else { return false }
            return true
        }
        let code = world.authority.resetCode
        try await world.signUp("alice", "another", resetCode: code)
        try await world.logIn("alice", "another")
        for draft in await world.network.sent {
            #expect(!String(decoding: draft.body, as: UTF8.self).contains(code))
        }
        let before = await world.network.sent.count
        await #expect(throws: ClientOperationError.self) {
            try await world.signUp("alice", "third", resetCode: "")
        }
        #expect(await world.network.sent.count == before)
    }

    /// The time is taken from an answer to this very question: not from one to another, not from one that is
    /// bound by its words alone, and not from one that is signed for this request and names another nonce.
    @Test func theTimeIsTakenFromAnAnswerToThisQuestion() async throws {
        let world = try await FakeWorld()
        let otherNonce = FakeNetwork.Mischief.resigned { body in
            let parts = String(decoding: body, as: UTF8.self).split(separator: "\"")
            guard let index = parts.firstIndex(of: "nonce").map({ $0 + 2 }) else { return body }
            let nonce = String(parts[index])
            return Array(
                String(decoding: body, as: UTF8.self).replacing(nonce, with: String(nonce.reversed())).utf8)
        }
        for mischief in [FakeNetwork.Mischief.answeredBefore, .unbound, otherNonce] {
            _ = try await TimeRequest(world.installation, environment: world.environment)()
            await world.authority.advance(by: 1_000)
            let done = await world.network.done
            await world.network.plan(mischief, at: "/time")
            await #expect {
                try await TimeRequest(world.installation, environment: world.environment)()
            } throws: { error in
                guard case ClientOperationError.notGenuine = error else { return false }
                return true
            }
            #expect(await world.network.done == done + 1)
        }
        #expect(try world.state.clockOffset == 2_000)
        #expect(try await TimeRequest(world.installation, environment: world.environment)() == 3_000)
    }
}
