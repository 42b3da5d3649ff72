import ClientFakes
import CountersignSchemes
import CountersignSeal
import CountersignTransport
import CountersignVault
import CountersignWire
import TestRounds
import Testing

@testable import CountersignClient

/// A refresh survives lost and forged responses, responses to other requests, the end of the process at any
/// step, and concurrent refreshes.
@Suite struct RefreshTests {
    private func signedIn(_ vault: MemoryVault = MemoryVault()) async throws -> FakeWorld {
        let world = try await FakeWorld(vault)
        try await world.signUp()
        try await world.logIn()
        return world
    }

    private func runOut(_ world: FakeWorld) async { await world.pass(FakeSession.lifetime) }

    /// A thousand of them in the long run.
    @Test func lostAnswersAreRecoveredOneAfterAnother() async throws {
        let world = try await signedIn()
        let rounds = rounds(500)
        for round in 1...rounds {
            await runOut(world)
            // The response and the one to the second copy are lost: the call fails, and the next one
            // continues with the same attempt.
            await world.network.plan(.lost, at: "/token")
            await world.network.plan(.lost, at: "/token")
            let lost = world
            await #expect { try await lost.calls.send(lost.draft()) } throws: { error in
                guard case ClientOperationError.transport(let problem) = error else { return false }
                return problem.fate == .outcomeUnknown
            }
            #expect(await world.network.done == 2 * round)
            #expect(try await world.calls.send(world.draft()).response.status == 200)
        }
        #expect(await world.authority.session?.epoch == UInt32(rounds))
    }

    @Test func forgedAndSwappedAnswersAreNotActedUpon() async throws {
        let forged: [FakeNetwork.Mischief] = [
            .answered { _ in Response(status: 401, fields: [], body: Array(#"{"code":"session-ended"}"#.utf8))
            },
            .answered { answer in
                var answer = answer
                answer.message.body = Array(#"{"code":"session-ended"}"#.utf8)
                return answer
            },
            .answered { answer in
                var answer = answer
                answer.status = 500
                return answer
            },
            .answeredBefore, .doubled,
        ]
        for (path, mischief) in ["/token", "/orders"].flatMap({ path in forged.map { (path, $0) } }) {
            let world = try await signedIn()
            await runOut(world)
            await world.network.plan(mischief, at: path)
            _ = try? await world.calls.send(world.draft())
            #expect(await world.network.done == 1)
            #expect(try world.state.login != nil, "signed out by \(mischief) at \(path)")
            #expect(try await world.calls.send(world.draft()).response.status == 200)
            #expect(await world.authority.session?.ended == nil)
        }
    }

    @Test func onlyTheAuthoritysWordEndsASession() async throws {
        let world = try await signedIn()
        await world.authority.end("replaced")
        await #expect { try await world.calls.send(world.draft()) } throws: { error in
            guard case ClientOperationError.sessionEnded(let notice) = error else { return false }
            return notice.reason == "replaced"
        }
        #expect(try world.state.login == nil)
    }

    @Test func anEndIsLearntAtARefreshToo() async throws {
        let world = try await signedIn()
        await runOut(world)
        // The call is refused for an expired token; the session ends before the refresh arrives.
        await world.network.plan(.answered { $0 }, at: "/orders")
        let held = world
        await world.network.plan(.notSent, at: "/token")
        await #expect(throws: ClientOperationError.self) { try await held.calls.send(held.draft()) }
        #expect(try world.state.login != nil)
        await world.authority.end("revoked")
        await #expect(throws: ClientOperationError.self) { try await held.calls.send(held.draft()) }
        #expect(try world.state.login == nil)
    }

    /// The process ends at each write of the vault and at each request in turn; the next process on the same
    /// vault has the session.
    @Test func anEndAtAnyStepLosesNothing() async throws {
        var steps = 0
        for write in 0...6 {
            let vault = MemoryVault()
            var world = try await signedIn(vault)
            await runOut(world)
            vault.failAfter(writes: write)
            let dying = world
            let died = (try? await dying.calls.send(dying.draft())) == nil
            if died { steps += 1 }
            vault.failAfter(writes: .max)
            try world.restart()
            #expect(try await world.calls.send(world.draft()).response.status == 200, "after \(write) writes")
            #expect(await world.authority.session?.ended == nil)
            await runOut(world)
            #expect(try await world.calls.send(world.draft()).response.status == 200)
        }
        // The writes of the attempt and of the successor: a later missing write has no visible effect.
        #expect(steps == 2)
    }

    @Test func anEndAtAnyRequestLosesNothing() async throws {
        for (path, mischief) in [
            ("/orders", FakeNetwork.Mischief.lost), ("/token", .lost), ("/token", .notSent),
        ] {
            var world = try await signedIn()
            await runOut(world)
            await world.network.plan(mischief, at: path)
            await world.network.plan(mischief, at: path)
            let dying = world
            _ = try? await dying.calls.send(dying.draft())
            #expect(await world.network.done > 0)
            await world.network.calm()
            try world.restart()
            #expect(try await world.calls.send(world.draft()).response.status == 200)
            #expect(await world.authority.session?.ended == nil)
        }
    }

    /// A copy that may have been executed is not forgotten when the next one is not sent: an app that reads
    /// "not sent" would send the request again under another key.
    @Test(arguments: [[FakeNetwork.Mischief.lost, .notSent], [.notSent]])
    func aLostCopyIsNotForgotten(_ mischiefs: [FakeNetwork.Mischief]) async throws {
        let world = try await signedIn()
        for mischief in mischiefs { await world.network.plan(mischief, at: "/orders") }
        do {
            _ = try await world.calls.send(world.draft("POST"))
            Issue.record("expected an error")
        } catch {
            guard case .transport(let failure) = error else {
                Issue.record("\(error)")
                return
            }
            #expect(failure.fate == (mischiefs.count == 2 ? .outcomeUnknown : .notSent))
        }
    }

    /// Whatever becomes of its copies, nobody is signed in here any more, and the server is told later: after
    /// the next request of the app's, even if the token has expired meanwhile, and by another process.
    @Test(arguments: [FakeNetwork.Mischief.lost, .notSent]) func aLogOutOfflineIsToldLater(
        _ mischief: FakeNetwork.Mischief
    ) async throws {
        let world = try await signedIn()
        await world.network.plan(mischief, at: "/logout")
        guard case .toldLater = try await LogOut(world.installation, environment: world.environment)() else {
            throw FakeAuthority.Problem.broken
        }
        #expect(try world.state.login == nil && world.state.pendingLogOuts.count == 1)
        await #expect(throws: ClientOperationError.self) { try await world.calls.send(world.draft()) }
        await world.pass(FakeSession.lifetime + 60)
        let later = try world.another()
        #expect(try later.keeper.readVault().pendingLogOuts.count == 1, "the vault keeps it")
        _ = try await ReleaseCalls(later.installation, environment: later.environment).send(later.draft())
        await later.keeper.logOuts.settle(within: .seconds(10))
        #expect(await world.authority.session?.ended == "signed-out")
        #expect(try later.state.pendingLogOuts.isEmpty, "and it is told once")
        await #expect(throws: ClientOperationError.self) {
            try await LogOut(later.installation, environment: later.environment)()
        }
    }

    /// A login tells the server of the session before; the new one stays.
    @Test func aLogOutOfflineSparesTheNextSession() async throws {
        let world = try await signedIn()
        await world.network.plan(.notSent, at: "/logout")
        let old = try #require(try world.state.login?.id)
        _ = try await LogOut(world.installation, environment: world.environment)()
        let new = try await world.logIn()
        #expect(new.id != old)
        await world.keeper.logOuts.settle(within: .seconds(10))
        #expect(try world.state.pendingLogOuts.isEmpty)
        #expect(try await world.calls.send(world.draft()).response.status == 200)
    }

    /// No more than eight, and none beyond the end of its session.
    @Test func logOutsThatAreToldLaterAreBounded() async throws {
        let world = try await signedIn()
        var sessions: [SessionID] = []
        for _ in 0..<10 {
            await world.network.plan(.notSent, at: "/logout")
            sessions.append(try #require(try world.state.login?.id))
            _ = try await LogOut(world.installation, environment: world.environment)()
            await world.network.plan(.notSent, at: "/logout")
            try await world.logIn()
        }
        #expect(try world.keeper.readVault().pendingLogOuts.map(\.session) == Array(sessions.suffix(8)))
        await world.pass(91 * 86_400)
        await world.keeper.logOuts.settle(within: .seconds(10))
        await world.network.calm()
        await PendingLogOuts(installation: world.installation, environment: world.environment).send()
        #expect(try world.state.pendingLogOuts.isEmpty)
    }

    @Test(arguments: ["memory", "file"]) func manyAtOnceRefreshOnce(_ kind: String) async throws {
        let folder = TestFolder()
        defer { folder.remove() }
        let sealed = SealedFile("\(folder.path)/vault", guardedBy: KeyFileGuard("\(folder.path)/vault.key"))
        var world = try await FakeWorld()
        if kind == "file" { world = try world.use(Vault(sealed, locks: VaultLocks(folder: folder.path))) }
        try await world.signUp()
        try await world.logIn()
        for round in 1...5 {
            await runOut(world)
            let shared = world
            let all = await withTaskGroup(of: Int.self) { group in
                for _ in 0..<20 {
                    group.addTask {
                        (try? await shared.calls.send(shared.draft("POST")).response.status) ?? 0
                    }
                }
                return await group.reduce(into: []) { $0.append($1) }
            }
            #expect(all == [Int](repeating: 200, count: 20))
            #expect(await world.authority.refreshes == round)
        }
    }

    @Test func aSuccessorThatTheAuthorityLostIsAskedForAgain() async throws {
        let world = try await signedIn()
        await runOut(world)
        // The call under the successor never arrives, and the authority drops its offer.
        await world.network.plan(.answered { $0 }, at: "/orders")
        await world.network.plan(.notSent, at: "/orders")
        let held = world
        await #expect(throws: ClientOperationError.self) { try await held.calls.send(held.draft()) }
        guard case .device(let session)? = try world.state.login?.session else {
            throw FakeAuthority.Problem.broken
        }
        #expect(session.successor != nil)
        await world.authority.loseSuccessor()
        #expect(try await world.calls.send(world.draft()).response.status == 200)
        #expect(await world.authority.session?.ended == nil)
    }

    /// The authority accepted the call under the successor; a man in the middle replaces its response by a
    /// genuine refusal of another call.
    @Test(arguments: ["unknown-key", "bad-signature"]) func anHonestRefusalOfASuccessorThatIsInUseIsOutlived(
        _ code: String
    ) async throws {
        let world = try await signedIn()
        await runOut(world)
        await world.network.plan(.answered { $0 }, at: "/orders")
        await world.network.plan(.changedAndPassedOn(code), at: "/orders")
        #expect(try await world.calls.send(world.draft()).response.status == 200)
        #expect(await world.network.done == 2)
        #expect(await world.authority.session?.epoch == 1)
        guard case .device(let session)? = try world.state.login?.session else {
            throw FakeAuthority.Problem.broken
        }
        #expect(session.current.number == 1 && session.successor == nil)
        await runOut(world)
        #expect(try await world.calls.send(world.draft()).response.status == 200)
        #expect(await world.authority.session?.epoch == 2)
    }

    @Test func aSuccessorIsKeptThroughARefusalThatGoesOn() async throws {
        let world = try await signedIn()
        await runOut(world)
        await world.network.plan(.answered { $0 }, at: "/orders")
        for _ in 0..<3 { await world.network.plan(.changedAndPassedOn("unknown-key"), at: "/orders") }
        #expect(try await world.calls.send(world.draft()).notice?.code == "unknown-key")
        #expect(await world.network.done == 4)
        #expect(try await world.calls.send(world.draft()).response.status == 200)
    }

    /// A refusal signed with the authority's key may concern a field added on the way; one signed with the
    /// session's key concerns the session.
    @Test func aSessionsEndIsSaidWithItsOwnKey() async throws {
        let world = try await signedIn()
        await world.network.plan(.changed("session-ended"), at: "/orders")
        #expect(try await world.calls.send(world.draft()).notice?.isGenuine == true)
        #expect(await world.network.done == 1)
        #expect(try world.state.login != nil)
        #expect(try await world.calls.send(world.draft()).response.status == 200)
    }

    /// The next epoch comes from the authority that has the session's key, not from one that has only the
    /// authority's key.
    @Test func aSuccessorIsSignedWithTheSessionsKey() async throws {
        let world = try await signedIn()
        await runOut(world)
        await world.network.plan(.resigned { $0 }, at: "/token")
        let deceived = world
        await #expect { try await deceived.calls.send(deceived.draft()) } throws: { error in
            guard case ClientOperationError.notGenuine = error else { return false }
            return true
        }
        #expect(await world.network.done == 1)
        guard case .device(let session)? = try world.state.login?.session else {
            Issue.record("signed out")
            return
        }
        #expect(session.successor == nil && session.current.number == 0)
        #expect(try await world.calls.send(world.draft()).response.status == 200)
    }

    /// The vault is restored to its state between an attempt and its response: the successor is in use
    /// elsewhere, and this copy does not know it.
    @Test func anAttemptThatWasFollowedElsewhereEndsTheSession() async throws {
        let vault = MemoryVault()
        var world = try await signedIn(vault)
        await runOut(world)
        for _ in 0..<2 { await world.network.plan(.lost, at: "/token") }
        let losing = world
        await #expect(throws: ClientOperationError.self) { try await losing.calls.send(losing.draft()) }
        let asking = vault.contents
        _ = try await world.calls.send(world.draft())
        vault.contents = asking
        try world.restart()
        await world.pass(31)
        try await expectReuse(world)
    }

    /// More than one epoch behind, the authority no longer knows the key, but a refresh attempt identifies
    /// the device.
    @Test func aCopyOfTheVaultFromLongAgoEndsTheSession() async throws {
        let vault = MemoryVault()
        var world = try await signedIn(vault)
        let old = vault.contents
        for _ in 0..<3 {
            await runOut(world)
            _ = try await world.calls.send(world.draft())
        }
        vault.contents = old
        try world.restart()
        try await expectReuse(world)
    }

    /// The same with a successor that is long out of use: the authority records its attempt longer than its
    /// key.
    @Test func aCopyOfTheVaultWithAnOldSuccessorEndsTheSession() async throws {
        let vault = MemoryVault()
        var world = try await signedIn(vault)
        await runOut(world)
        await world.network.plan(.answered { $0 }, at: "/orders")
        for _ in 0..<2 { await world.network.plan(.lost, at: "/orders") }
        let losing = world
        await #expect(throws: ClientOperationError.self) { try await losing.calls.send(losing.draft()) }
        let old = vault.contents
        guard case .device(let session)? = try world.state.login?.session else {
            throw FakeAuthority.Problem.broken
        }
        #expect(session.successor != nil)
        for _ in 0..<3 {
            await runOut(world)
            _ = try await world.calls.send(world.draft())
        }
        vault.contents = old
        try world.restart()
        try await expectReuse(world)
    }

    private func expectReuse(_ world: FakeWorld) async throws {
        await #expect { try await world.calls.send(world.draft()) } throws: { error in
            guard case ClientOperationError.sessionEnded(let notice) = error else { return false }
            return notice.reason == "reused"
        }
        #expect(try world.state.login == nil)
    }

    @Test func anOldCopyOfTheVaultEndsTheSession() async throws {
        let vault = MemoryVault()
        var world = try await signedIn(vault)
        let old = vault.contents
        await runOut(world)
        _ = try await world.calls.send(world.draft())
        let new = vault.contents
        // A copy taken before, used after, is another attempt from an epoch that was left: the authority ends
        // the session.
        vault.contents = old
        try world.restart()
        await world.pass(31)
        let thief = world
        await #expect { try await thief.calls.send(thief.draft()) } throws: { error in
            guard case ClientOperationError.sessionEnded(let notice) = error else { return false }
            return notice.reason == "reused"
        }
        vault.contents = new
        try world.restart()
        let owner = world
        await #expect(throws: ClientOperationError.self) { try await owner.calls.send(owner.draft()) }
        #expect(try world.state.login == nil)
    }
}
