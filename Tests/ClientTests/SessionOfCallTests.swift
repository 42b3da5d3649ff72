import ClientFakes
import CountersignHandshake
import CountersignSeal
import CountersignWire
import Testing

@testable import CountersignClient

/// What is said of one session is said under no other, of whomever.
@Suite struct SessionOfCallTests {
    /// Another process signs in while the response that the token expired is in transit.
    private func overtaken(by name: String, at path: String) async throws -> FakeWorld {
        let world = try await FakeWorld()
        for account in ["alice", "bob"] { try await world.signUp(account) }
        try await world.logIn()
        await world.pass(FakeSession.lifetime)
        let other = try world.another()
        await world.network.plan(.meanwhile { try await other.logIn(name) }, at: path)
        return world
    }

    private func sent(_ world: FakeWorld, to path: String) async -> Int {
        await world.network.sent.count { String(decoding: $0.target, as: UTF8.self).hasSuffix(path) }
    }

    @Test(arguments: ["alice", "bob"]) func aLogOutEndsNoSessionThatBeganMeanwhile(_ name: String)
        async throws
    {
        let world = try await overtaken(by: name, at: "/logout")
        let before = try world.state.login?.id
        let outcome = try await LogOut(world.installation, environment: world.environment)()
        guard case .signedOut = outcome else { throw FakeAuthority.Problem.broken }
        #expect(await world.network.done == 1)
        // The other process found the pending log-out in the vault, and told the server, too.
        #expect(await sent(world, to: "/logout") <= 2)
        let now = try #require(try world.state.login)
        #expect(now.id != before && now.account.description == name)
        #expect(await world.authority.session?.id == now.id)
        #expect(await world.authority.session?.ended == nil)
        #expect(try await world.calls.send(world.draft()).response.status == 200)
    }

    /// Whose step of it does not matter: each is sent as this session's.
    @Test(arguments: ["alice", "bob"]) func aChangeOfPasswordIsOfOneSession(_ name: String) async throws {
        let world = try await overtaken(by: name, at: "/password/start")
        await #expect {
            try await PasswordChange(world.installation, environment: world.environment)(
                from: FakeWorld.password("correct horse"), to: FakeWorld.password("another"))
        } throws: { error in
            if case ClientOperationError.accountChanged = error { true } else { false }
        }
        #expect(await world.network.done == 1)
        #expect(await sent(world, to: "/password/start") == 1)
    }

    @Test func aRequestOfAnAccountIsNobodyElses() async throws {
        let world = try await FakeWorld()
        try await world.signUp()
        let login = try await world.logIn()
        let bob = try AccountName(normalizing: "bob")
        let bytes = SystemRandom().bytes(SessionID.count)
        let another = SessionID(bytes.span)
        let strange = try #require(another)
        for owner in [SignedCalls.Owner.account(bob), .session(strange)] {
            let before = await world.network.sent.count
            await #expect { try await world.calls.send(world.draft(), as: owner) } throws: { error in
                if case ClientOperationError.accountChanged = error { true } else { false }
            }
            #expect(throws: ClientOperationError.self) { try world.calls.signed(world.draft(), as: owner) }
            #expect(await world.network.sent.count == before)
        }
        for owner in [SignedCalls.Owner.account(login.account), .session(login.id), .currentAccount] {
            #expect(try await world.calls.send(world.draft(), as: owner).response.status == 200)
        }
    }
}
