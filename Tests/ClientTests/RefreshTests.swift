import CountersignSchemes
import CountersignSeal
import CountersignVault
import CountersignWire
import Testing

@testable import CountersignClient

/// What a refresh survives: lost answers, forged ones, those to other requests, an end at any step, and others who refresh too.
@Suite struct RefreshTests {
    private func signedIn(_ vault: MemoryVault = MemoryVault()) async throws -> FakeWorld {
        let world = try await FakeWorld(vault)
        try await world.signUp()
        try await world.logIn()
        return world
    }

    private func runOut(_ world: FakeWorld) async { await world.pass(FakeSession.lifetime) }

    /// A thousand of them with `COUNTERSIGN_LONG=1`.
    @Test func lostAnswersAreRecoveredOneAfterAnother() async throws {
        let world = try await signedIn()
        let rounds = Histories.isLong ? 500 : 50
        for round in 1...rounds {
            await runOut(world)
            // The answer, and the answer to the second copy: the call fails, and the next one goes on with the same attempt.
            await world.network.plan(.lost, at: "/token")
            await world.network.plan(.lost, at: "/token")
            let lost = world
            await #expect { try await lost.calls.send(lost.draft()) } throws: { error in
                guard case ClientProblem.outcomeUnknown = error else { return false }
                return true
            }
            #expect(await world.network.done == 2 * round)
            #expect(try await world.calls.send(world.draft()).response.status == 200)
        }
        #expect(await world.authority.session?.epoch == UInt32(rounds))
    }

    @Test func forgedAndSwappedAnswersAreNotActedUpon() async throws {
        let forged: [FakeNetwork.Mischief] = [
            .answered { _ in Response(status: 401, fields: [], body: Array(#"{"code":"session-ended"}"#.utf8)) },
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
            guard case ClientProblem.sessionEnded(let notice) = error else { return false }
            return notice.reason == "replaced"
        }
        #expect(try world.state.login == nil)
    }

    @Test func anEndIsLearntAtARefreshToo() async throws {
        let world = try await signedIn()
        await runOut(world)
        // The call says that the token ran out; the session ends before the refresh comes.
        await world.network.plan(.answered { $0 }, at: "/orders")
        let held = world
        await world.network.plan(.notSent, at: "/token")
        await #expect(throws: ClientProblem.self) { try await held.calls.send(held.draft()) }
        #expect(try world.state.login != nil)
        await world.authority.end("revoked")
        await #expect(throws: ClientProblem.self) { try await held.calls.send(held.draft()) }
        #expect(try world.state.login == nil)
    }

    /// The process ends at each write of the vault and at each request in turn; whoever comes after it, with the vault as it was
    /// left, has the session.
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
        // The attempt, and the successor: a write that is missed later changes nothing that anybody sees.
        #expect(steps == 2)
    }

    @Test func anEndAtAnyRequestLosesNothing() async throws {
        for (path, mischief) in [("/orders", FakeNetwork.Mischief.lost), ("/token", .lost), ("/token", .notSent)] {
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
                    group.addTask { (try? await shared.calls.send(shared.draft("POST")).response.status) ?? 0 }
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
        // The call under the successor never arrives, and the authority forgets what it offered.
        await world.network.plan(.answered { $0 }, at: "/orders")
        await world.network.plan(.notSent, at: "/orders")
        let held = world
        await #expect(throws: ClientProblem.self) { try await held.calls.send(held.draft()) }
        guard case .device(let session)? = try world.state.login?.session else { throw FakeAuthority.Problem.broken }
        #expect(session.successor != nil)
        await world.authority.loseSuccessor()
        #expect(try await world.calls.send(world.draft()).response.status == 200)
        #expect(await world.authority.session?.ended == nil)
    }

    /// The call under the successor was let in, and who is in between had another one refused in its place.
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
        guard case .device(let session)? = try world.state.login?.session else { throw FakeAuthority.Problem.broken }
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

    /// Under the authority's own key the word may be about what was added on the way; the session's is about the session.
    @Test func aSessionsEndIsSaidWithItsOwnKey() async throws {
        let world = try await signedIn()
        await world.network.plan(.changed("session-ended"), at: "/orders")
        #expect(try await world.calls.send(world.draft()).notice?.isGenuine == true)
        #expect(await world.network.done == 1)
        #expect(try world.state.login != nil)
        #expect(try await world.calls.send(world.draft()).response.status == 200)
    }

    /// A vault as it was between the attempt and its answer: what the attempt led to is in use, and known to nobody here.
    @Test func anAttemptThatWasFollowedElsewhereEndsTheSession() async throws {
        let vault = MemoryVault()
        var world = try await signedIn(vault)
        await runOut(world)
        for _ in 0..<2 { await world.network.plan(.lost, at: "/token") }
        let losing = world
        await #expect(throws: ClientProblem.self) { try await losing.calls.send(losing.draft()) }
        let asking = vault.contents
        _ = try await world.calls.send(world.draft())
        vault.contents = asking
        try world.restart()
        await world.pass(31)
        try await expectReuse(world)
    }

    /// More than one epoch behind, the authority does not know the key any more; asked for the next one, it knows the device.
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

    /// The same with the successor in it, which was left long ago: the attempt that led to it is remembered longer than its key.
    @Test func aCopyOfTheVaultWithAnOldSuccessorEndsTheSession() async throws {
        let vault = MemoryVault()
        var world = try await signedIn(vault)
        await runOut(world)
        await world.network.plan(.answered { $0 }, at: "/orders")
        for _ in 0..<2 { await world.network.plan(.lost, at: "/orders") }
        let losing = world
        await #expect(throws: ClientProblem.self) { try await losing.calls.send(losing.draft()) }
        let old = vault.contents
        guard case .device(let session)? = try world.state.login?.session else { throw FakeAuthority.Problem.broken }
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
            guard case ClientProblem.sessionEnded(let notice) = error else { return false }
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
        // A copy taken before, used after, is another attempt from an epoch that was left: the authority ends the session.
        vault.contents = old
        try world.restart()
        await world.pass(31)
        let thief = world
        await #expect { try await thief.calls.send(thief.draft()) } throws: { error in
            guard case ClientProblem.sessionEnded(let notice) = error else { return false }
            return notice.reason == "reused"
        }
        vault.contents = new
        try world.restart()
        let owner = world
        await #expect(throws: ClientProblem.self) { try await owner.calls.send(owner.draft()) }
        #expect(try world.state.login == nil)
    }
}
