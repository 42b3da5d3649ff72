import ClientFakes
import CountersignSeal
import CountersignTrust
import CountersignVault
import Testing

@testable import Countersign

/// A device key that requires user presence.
@Suite(.timeLimit(.minutes(15))) struct PresenceTests {
    /// A provider of simulated user presence.
    final class Person: PresenceProvider {
        enum Conduct: Sendable { case isThere, doesNotWantTo }

        private let secrets = Locked<[ItemName: Secret]>([:])
        private let conduct = Locked(Conduct.isThere)
        /// The reasons shown to the user.
        let reasons = Locked<[String]>([])

        func behave(_ conduct: Conduct) { self.conduct.with { $0 = conduct } }

        func bind(
            _ secret: Secret, to name: ItemName, in vault: Vault, reason: String
        ) async throws(VaultError) -> PresenceAnswer<Void> {
            reasons.with { $0.append(reason) }
            guard conduct.with({ $0 }) == .isThere else { return .notPresent(.loginPage, "test") }
            secrets.with { $0[name] = secret }
            return .present(())
        }

        func release(
            _ name: ItemName, from vault: Vault, reason: String
        ) async throws(VaultError) -> PresenceAnswer<Secret> {
            reasons.with { $0.append(reason) }
            guard conduct.with({ $0 }) == .isThere, let secret = secrets.with({ $0[name] }) else {
                return .notPresent(.retry, "test")
            }
            return .present(secret)
        }

        func forget(_ name: ItemName, in vault: Vault) async throws(VaultError) {
            secrets.with { $0[name] = nil }
        }
    }

    private let person = Person()

    private func world(_ change: (inout CountersignOptions) -> Void = { _ in }) async throws -> World {
        let presence = UserPresence(person)
        return try await World {
            $0.deviceKey = .boundToPresence(presence)
            change(&$0)
        }
    }

    @Test func aRefreshNeedsSomebody() async throws {
        let world = try await world()
        let client = try await world.signedIn()
        #expect(person.reasons.with { $0 } == ["Sign in"])
        // With a valid token the user is not asked.
        #expect(try await client.data(for: APIRequest("/orders")).1.status == 200)
        await world.pass(FakeSession.lifetime)
        let events = client.events
        await #expect { try await client.data(for: APIRequest("/orders")) } throws: { error in
            if case CountersignError.presenceNeeded = error { true } else { false }
        }
        #expect(client.state == .locked)
        #expect(await world.authority.refreshes == 0)
        #expect(await first(of: events) { $0 == .presenceNeeded } != nil)
        let status = try await client.withPresence("Show your orders") { client in
            try await client.data(for: APIRequest("/orders")).1.status
        }
        #expect(status == 200 && person.reasons.with { $0.last } == "Show your orders")
        #expect(await world.authority.refreshes == 1)
        guard case .active = client.state else {
            Issue.record("\(client.state)")
            return
        }
        // The renewed token needs no presence.
        #expect(try await client.data(for: APIRequest("/orders")).1.status == 200)
    }

    @Test func whoDoesNotShowHimselfIsToldWhatToDo() async throws {
        let world = try await world()
        let client = try await world.signedIn()
        person.behave(.doesNotWantTo)
        await #expect { try await client.withPresence("Confirm payment") { _ in } } throws: { error in
            guard case CountersignError.notPresent(let step) = error else { return false }
            return step == .retry
        }
        await #expect { try await client.unlock("Open the app") } throws: { error in
            if case CountersignError.notPresent = error { true } else { false }
        }
    }

    @Test func aLoginThatBindsNothingIsNone() async throws {
        let world = try await world()
        let client = try world.client()
        try await client.signUp("alice", "correct horse")
        person.behave(.doesNotWantTo)
        await #expect { try await client.logIn("alice", "correct horse") } throws: { error in
            if case CountersignError.notPresent(.loginPage) = error { true } else { false }
        }
        #expect(await client.resume() != .active(CountersignAccount(name: "alice", session: "")))
        await #expect(throws: CountersignError.self) { try await client.data(for: APIRequest("/orders")) }
    }

    @Test func whatIsKeptOfItIsOfNoUse() async throws {
        let world = try await world()
        let client = try await world.signedIn()
        let kept = try await client.withPresence("Confirm payment") { $0 }
        await world.pass(FakeSession.lifetime)
        await #expect { try await kept.data(for: APIRequest("/orders")) } throws: { error in
            if case CountersignError.presenceNeeded = error { true } else { false }
        }
        #expect(await world.authority.refreshes == 0)
    }

    @Test func theGateAtLaunch() async throws {
        let world = try await world()
        _ = try await world.signedIn()
        await world.pass(FakeSession.lifetime)
        let client = try world.client()
        #expect(await client.resume() == .locked)
        try await client.unlock("Open the app")
        #expect(await world.authority.refreshes == 1)
        guard case .active = client.state else {
            Issue.record("\(client.state)")
            return
        }
    }

    @Test func aLiveTokenOpensNoGate() async throws {
        let world = try await world()
        _ = try await world.signedIn()
        let client = try world.client()
        let events = client.events
        #expect(await client.resume() == .locked)
        // The login was silent: the authority has confirmed it.
        #expect(await world.backend.copies(of: "/session").count == 1)
        for call: @Sendable () async throws -> Void in [
            { _ = try await client.data(for: APIRequest("/orders")) },
            { _ = try await client.signed(APIRequest("/orders")) },
            { _ = try await client.sessions() },
            { try await client.confirmSession() },
        ] {
            await #expect { try await call() } throws: { error in
                if case CountersignError.presenceNeeded = error { true } else { false }
            }
        }
        #expect(await world.backend.copies(of: "/orders").isEmpty)
        person.behave(.doesNotWantTo)
        await #expect(throws: CountersignError.self) { try await client.unlock("Open the app") }
        #expect(client.state == .locked)
        person.behave(.isThere)
        try await client.unlock("Open the app")
        #expect(await world.authority.refreshes == 0)
        #expect(try await client.data(for: APIRequest("/orders")).1.status == 200)
        guard case .active = client.state else {
            Issue.record("\(client.state)")
            return
        }
        try await client.logOut()
        var announced = 0
        for await event in events {
            if event == .presenceNeeded { announced += 1 }
            if event == .state(.signedOut) { break }
        }
        #expect(announced == 1)
    }

    @Test func requestsMayWaitAtTheGate() async throws {
        let world = try await world { $0.whenPaused = .wait }
        _ = try await world.signedIn()
        let client = try world.client()
        await client.resume()
        let waiting = await client.waitingRequest("/orders")
        #expect(await world.backend.copies(of: "/orders").isEmpty)
        try await client.withPresence("Open the app") { _ in }
        #expect(try await waiting.value == 200)
    }

    @Test func aLoginIsThroughTheGate() async throws {
        let world = try await world()
        let client = try await world.signedIn()
        let again = try world.client()
        #expect(await again.resume() == .locked)
        let events = again.events
        try await again.logIn("alice", "correct horse")
        #expect(try await again.data(for: APIRequest("/orders")).1.status == 200)
        try await again.logOut()
        var seen: [CountersignEvent] = []
        for await event in events {
            seen.append(event)
            if event == .state(.signedOut) { break }
        }
        #expect(seen.contains(.state(.active)) && !seen.contains(.presenceNeeded))
        #expect(client.state != .locked)
    }

    @Test func theGateMayBeLeftOut() async throws {
        let world = try await world { $0.gate = .none }
        _ = try await world.signedIn()
        let client = try world.client()
        guard case .active = await client.resume() else {
            Issue.record("\(client.state)")
            return
        }
        #expect(try await client.data(for: APIRequest("/orders")).1.status == 200)
    }

    @Test func aSessionWhoseKeyIsKeptFindsNoGate() async throws {
        var world = try await World()
        _ = try await world.signedIn()
        world.options.deviceKey = .boundToPresence(UserPresence(person))
        guard case .active = try await world.client().resume() else {
            Issue.record("nothing would open it")
            return
        }
    }

    @Test func aKeyThatIsKeptOpensNothingByPresence() async throws {
        let client = try await World().signedIn()
        await #expect { try await client.withPresence("Confirm payment") { _ in } } throws: { error in
            if case CountersignError.misuse = error { true } else { false }
        }
    }
}
