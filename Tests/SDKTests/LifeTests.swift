import ClientFakes
import Testing

@testable import Countersign

/// From one start of an app to the next.
@Suite(.timeLimit(.minutes(15))) struct LifeTests {
    @Test func whoWasSignedInIsAgain() async throws {
        let world = try await World()
        _ = try await world.signedIn()
        let client = try world.client()
        #expect(client.state == .unavailable)
        guard case .active(let account) = await client.resume() else {
            Issue.record("\(client.state)")
            return
        }
        #expect(account.name == "alice")
        #expect(await world.backend.copies(of: "/session").count == 1)
        let session = try await client.confirmSession()
        #expect(session.isCurrent && session.id == account.session && session.deviceName == "unnamed")
        #expect(try await client.data(for: APIRequest("/orders")).1.status == 200)
    }

    @Test func aTokenThatRanOutMeanwhileIsRenewed() async throws {
        let world = try await World()
        _ = try await world.signedIn()
        await world.pass(FakeSession.lifetime)
        guard case .active = try await world.client().resume() else {
            Issue.record("not signed in")
            return
        }
        #expect(await world.authority.refreshes == 1)
    }

    @Test func beingOfflineEndsNoSession() async throws {
        let world = try await World()
        _ = try await world.signedIn()
        await world.backend.plan(.fail(TransportError(.offline, fate: .notSent)), at: "/session")
        let client = try world.client()
        guard case .active = await client.resume() else {
            Issue.record("\(client.state)")
            return
        }
        #expect(await world.backend.reactions == 1)
        #expect(try await client.data(for: APIRequest("/orders")).1.status == 200)
    }

    @Test func aSessionThatEndedMeanwhileIsTold() async throws {
        let world = try await World()
        _ = try await world.signedIn()
        await world.authority.end("password-changed")
        guard case .signedOut(.ended(let end)) = try await world.client().resume() else {
            Issue.record("still signed in")
            return
        }
        #expect(end.how == .passwordChanged)
        // The next start knows it without asking.
        let sent = await world.backend.sent.count
        #expect(try await world.client().resume() == .signedOut(.ended(end)))
        #expect(await world.backend.sent.count == sent)
    }

    @Test func theSwitchDecidesWhatOutlivesTheProcess() async throws {
        let world = try await World()
        let client = try await world.signedIn()
        try await client.remember(.nothing)
        // Here it goes on, through a refresh as well.
        await world.pass(FakeSession.lifetime)
        #expect(try await client.data(for: APIRequest("/orders")).1.status == 200)
        #expect(try await world.client().resume() == .signedOut(.nobody))
        try await client.remember(.session)
        guard case .active = try await world.client().resume() else {
            Issue.record("not kept")
            return
        }
        #expect(try await client.data(for: APIRequest("/orders")).1.status == 200)
    }

    @Test func whatWasKeptBeforeIsRemovedWhereNothingIsToBe() async throws {
        var world = try await World()
        _ = try await world.signedIn()
        world.options.remembers = .nothing
        let forgetful = try world.client()
        #expect(await forgetful.resume() == .signedOut(.nobody))
        try await forgetful.logIn("alice", "correct horse")
        #expect(try await forgetful.data(for: APIRequest("/orders")).1.status == 200)
        world.options.remembers = .session
        #expect(try await world.client().resume() == .signedOut(.nobody))
    }

    @Test func aVaultThatCannotBeReadConcludesNothing() async throws {
        let world = try await World()
        _ = try await world.signedIn()
        try world.folder.spoil("items.key")
        let client = try world.client()
        let state = await client.resume()
        #expect(state == .unavailable || state == .locked)
        await #expect { try await client.data(for: APIRequest("/orders")) } throws: { error in
            switch error as? CountersignError {
            case .vaultFailed, .vaultLocked: true
            default: false
            }
        }
    }
}
