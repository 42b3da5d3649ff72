import ClientFakes
import CountersignSeal
import CountersignVault
import CountersignWire
import Synchronization
import Testing

@testable import CountersignClient

/// The state in memory, the state in the vault, and the result of concurrent writes.
@Suite struct StateKeeperTests {
    private func signedIn() async throws -> FakeWorld {
        let world = try await FakeWorld()
        try await world.signUp()
        try await world.signUp("bob")
        try await world.logIn()
        return world
    }

    @Test func requestsDoNotTouchTheVault() async throws {
        let world = try await signedIn()
        let (readings, writes) = (world.store.readings, world.store.writes)
        for _ in 0..<10 { #expect(try await world.calls.send(world.draft("POST")).response.status == 200) }
        #expect(world.store.readings == readings && world.store.writes == writes)
    }

    /// While the refresh's answer is on its way the user signs out, in this process or in another.
    @Test(arguments: ["here", "elsewhere"]) func aLateRefreshBringsNobodyBack(_ place: String) async throws {
        let world = try await signedIn()
        await world.pass(FakeSession.lifetime)
        let other = place == "here" ? world : try world.another()
        await world.network.plan(
            .meanwhile { try LogOut(other.installation, environment: other.environment).forgetHere() },
            at: "/token")
        await #expect { try await world.calls.send(world.draft()) } throws: { error in
            guard case ClientOperationError.notSignedIn = error else { return false }
            return true
        }
        #expect(await world.network.done == 1)
        #expect(await world.authority.refreshes == 1)
        #expect(try world.state.login == nil)
        #expect(try world.keeper.state().login == nil)
    }

    /// The same, and another user, or the same one anew, signs in.
    @Test(arguments: ["bob", "alice"]) func aLateRefreshOverwritesNoLogin(_ name: String) async throws {
        let world = try await signedIn()
        await world.pass(FakeSession.lifetime)
        // A login that respects the lease waits for the refresh; this one uses other locks and does not wait.
        let folder = TestFolder()
        defer { folder.remove() }
        let other = try world.use(Vault(world.store, locks: VaultLocks(folder: folder.path)))
        await world.network.plan(.meanwhile { try await other.logIn(name) }, at: "/token")
        if name == "bob" {
            // What alice wanted is not done in bob's name.
            await #expect { try await world.calls.send(world.draft("POST")) } throws: { error in
                guard case ClientOperationError.accountChanged = error else { return false }
                return true
            }
        } else {
            #expect(try await world.calls.send(world.draft("POST")).response.status == 200)
        }
        #expect(await world.network.done == 1)
        #expect(try world.state.login?.account.description == name)
        #expect(try await world.state.login?.id == world.authority.session?.id)
        #expect(try await world.calls.send(world.draft()).response.status == 200)
    }

    /// The end of a session that another has taken the place of ends nothing here.
    @Test func theEndOfAnOldSessionDoesNotEndTheNewOne() async throws {
        let world = try await signedIn()
        try await world.another().logIn()
        #expect(try await world.calls.send(world.draft()).response.status == 200)
        #expect(try world.state.login != nil)
    }

    @Test func whatAnotherProcessDidIsFound() async throws {
        let world = try await signedIn()
        let other = try world.another()
        #expect(try await other.calls.send(other.draft()).response.status == 200)
        await world.pass(FakeSession.lifetime)
        #expect(try await world.calls.send(world.draft()).response.status == 200)
        // It was refused under the old token, and found the new one.
        #expect(try await other.calls.send(other.draft()).response.status == 200)
        #expect(await world.authority.refreshes == 1)
        guard case .signedOut = try await LogOut(world.installation, environment: world.environment)() else {
            throw FakeAuthority.Problem.broken
        }
        await #expect(throws: ClientOperationError.self) { try await other.calls.send(other.draft()) }
        try await world.logIn("bob")
        // In this client's memory no account was signed in.
        #expect(try await other.calls.send(other.draft()).response.status == 200)
    }

    @Test func aVaultThatIsClosedIsNotAnEmptyOne() async throws {
        let world = try await signedIn()
        world.store.close(.locked("the keyring"))
        // What is in memory goes on.
        #expect(try await world.calls.send(world.draft()).response.status == 200)
        let fresh = try world.another()
        await #expect { try await fresh.calls.send(fresh.draft()) } throws: { error in
            guard case ClientOperationError.vaultLocked("the keyring") = error else { return false }
            return true
        }
        world.store.close(.failed("the disk"))
        await #expect { try await fresh.calls.send(fresh.draft()) } throws: { error in
            guard case ClientOperationError.vaultFailed("the disk") = error else { return false }
            return true
        }
        // No attempt is sent that is not kept.
        await world.pass(FakeSession.lifetime)
        await #expect(throws: ClientOperationError.self) { try await world.calls.send(world.draft()) }
        #expect(await world.authority.refreshes == 0)
        world.store.close(nil)
        #expect(try await fresh.calls.send(fresh.draft()).response.status == 200)
    }

    @Test func howThingsStandIsAnnounced() async throws {
        let world = try await FakeWorld()
        let heard = VerifiedResponse()
        world.keeper.announce { heard.add($0) }
        #expect(heard.all == [])
        try await world.signUp()
        let first = try await world.logIn()
        world.store.close(.locked("the keyring"))
        #expect(throws: ClientOperationError.self) { try world.keeper.readVault() }
        world.store.close(nil)
        try world.keeper.readVault()
        await world.authority.end("revoked")
        await #expect(throws: ClientOperationError.self) { try await world.calls.send(world.draft()) }
        let second = try await world.logIn()
        _ = try await LogOut(world.installation, environment: world.environment)()
        let now = world.time.now
        #expect(
            heard.all == [
                .signedOut(nil), .active(first.account, first.id), .locked(.vault("the keyring")),
                .active(first.account, first.id),
                .signedOut(SessionEndRecord(reason: "revoked", at: now, by: nil)),
                .active(second.account, second.id),
                .signedOut(SessionEndRecord(reason: "signed-out", at: now, by: nil)),
            ])
        // The next process finds the reason of the end.
        #expect(try world.state.ended == SessionEndRecord(reason: "signed-out", at: now, by: nil))
    }

    /// A vault in which other writers are always faster.
    @Test func aVaultThatNeverKeepsWhatItIsGivenIsNotAskedForEver() async throws {
        let world = try await signedIn()
        let name = try StateKeeper.item(host: world.installation.host, app: nil)
        let rival = world.store.vault
        let contents = try #require(try rival.read(name).get()?.contents)
        var rounds = 0
        #expect(throws: ClientOperationError.self) {
            try world.keeper.change { (_) throws(ClientOperationError) -> StateKeeper.Decision<Void> in
                rounds += 1
                do { try rival.write(contents, to: name) } catch { throw .vaultFailed("the test's own") }
                return .write(())
            }
        }
        #expect(rounds == 100)
    }
}

/// Announcements as they came.
private final class VerifiedResponse: Sendable {
    private let standings = Mutex<[SessionStatus]>([])

    var all: [SessionStatus] { standings.withLock { $0 } }

    func add(_ standing: SessionStatus) { standings.withLock { $0.append(standing) } }
}
