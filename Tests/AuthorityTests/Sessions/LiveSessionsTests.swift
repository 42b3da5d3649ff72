import CSQLite
import CountersignGate
import CountersignHandshake
import CountersignSQL
import CountersignSchemes
import CountersignWire
import ScriptedClock
import Synchronization
import Testing

@testable import CountersignAuthority

@Suite struct LiveSessionsTests {
    @Test("a revocation by a command is seen by the very next request")
    func revocation() async throws {
        let scene = try SessionScene()
        let session = try await scene.signIn(scene.addAccount("alice"))
        #expect(try await scene.refusal(of: session) == nil)
        let admin = try AuthorityTests.deployment(scene.folder.data)
        let draft = admin.auditDraft(for: .sessionRevoke, on: .session(session.token.id, of: scene.app))
        _ = try admin.store.end(
            .one(session.token.id), with: SessionTermination(.revoked, at: scene.now), recording: draft)
        admin.generation.advance()
        #expect(
            try await scene.refusal(of: session)?.endedSession
                == Refusal.EndedSession(reason: "revoked", at: scene.now))
    }

    @Test("the one whose slot was taken is told by what and when")
    func replaced() async throws {
        let scene = try SessionScene(["slots=single"])
        let account = try scene.addAccount("alice")
        let session = try await scene.signIn(account)
        scene.clock.now += 7
        let other = try await scene.signIn(account, TestDevice(.tablet))
        #expect(
            try await scene.refusal(of: session)?.endedSession
                == Refusal.EndedSession(reason: "replaced", at: scene.now, by: "tablet"))
        #expect(try await scene.refusal(of: other) == nil)
    }

    @Test("what a restart finds in the store is what was there")
    func restart() async throws {
        let scene = try SessionScene(["slots=unlimited"])
        let account = try scene.addAccount("alice")
        var renewed = try await scene.signIn(account)
        let left = renewed
        let ended = try await scene.signIn(account)
        let offered = try await scene.signIn(account)
        try await scene.refresh(&renewed)
        #expect(try await scene.refusal(of: renewed) == nil)
        try await scene.life.end(.one(ended.token.id), with: SessionTermination(.signedOut, at: scene.now))
        var next = offered
        try await scene.refresh(&next)

        let path = scene.deployment.folder.database
        let live = try SessionDirectory(
            scene.deployment, keys: scene.keys,
            reader: StorePlace.sqlite(path: path).open(authenticatingBy: scene.deployment.rows),
            writer: scene.writer)
        #expect(live.counts == (3, 1))
        #expect(try live.session(for: renewed.token)?.0.edition == .current)
        #expect(try live.session(for: left.token)?.0.edition == .previous)
        #expect(try live.session(for: left.token)?.0.expires == scene.now + SessionDirectory.grace)
        #expect(try live.session(for: ended.token)?.0.end?.reason == .signedOut)
        #expect(try live.session(for: offered.token)?.0.edition == .current)
        #expect(try live.session(for: next.token)?.0.edition == .offered)
        #expect(try live.session(for: next.token)?.1.secret.copied == next.key.secret.copied)
        #expect(try live.session(for: SessionToken(id: next.token.id, epoch: 9)) == nil)
    }

    @Test("a row whose seal does not open closes that session, and no other")
    func alteredRow() async throws {
        let scene = try SessionScene(["slots=unlimited"])
        let account = try scene.addAccount("alice")
        let (altered, whole) = (try await scene.signIn(account), try await scene.signIn(account))
        try scene.execute(
            "UPDATE session SET sealed_root = "
                + "(SELECT sealed_root FROM session WHERE id = x'\(hex(whole.token.id))') "
                + "WHERE id = x'\(hex(altered.token.id))'")
        let live = try SessionDirectory(
            scene.deployment, keys: scene.keys,
            reader: StorePlace.sqlite(path: scene.deployment.folder.database).open(
                authenticatingBy: scene.deployment.rows),
            writer: scene.writer)
        #expect(try live.session(for: whole.token) != nil)
        #expect(throws: OperationalError.self) { try live.session(for: altered.token) }
    }

    @Test("a session that is idle for too long is refused, ended by nothing, and deleted after thirty days")
    func upkeep() async throws {
        let scene = try SessionScene(["session-idle=1h", "slots=unlimited"])
        let account = try scene.addAccount("alice")
        let idle = try await scene.signIn(account)
        scene.clock.now += 1_800
        let used = try await scene.signIn(account)
        scene.clock.now += 1_801
        try await scene.life.performMaintenance(at: .at(scene.now))
        #expect(try scene.row(idle.token.id).end == nil && scene.row(used.token.id).end == nil)
        #expect(try await scene.refusal(of: idle)?.endedSession?.reason == "expired")
        scene.clock.now += SessionLifecycle.endedSessionRetention - 1
        try await scene.life.performMaintenance(at: .at(scene.now))
        #expect(try scene.live.session(for: idle.token) != nil, "thirty days are not over")
        scene.clock.now += 1
        try await scene.life.performMaintenance(at: .at(scene.now))
        #expect(try scene.live.session(for: idle.token) == nil)
        #expect(try scene.deployment.store.session(idle.token.id) == nil)
        #expect(try await scene.refusal(of: idle)?.code == .unknownKey)
        #expect(try scene.row(used.token.id).end == nil)
    }

    @Test("a session older than session-max is deleted, too, however lately it was renewed")
    func ageUpkeep() async throws {
        let scene = try SessionScene(["session-idle=300d", "session-max=1h", "slots=unlimited"])
        let account = try scene.addAccount("alice")
        var old = try await scene.signIn(account)
        scene.clock.now += 3_599
        try await scene.refresh(&old)
        let young = try await scene.signIn(account)
        scene.clock.now += 1 + SessionLifecycle.endedSessionRetention
        try await scene.life.performMaintenance(at: .at(scene.now))
        #expect(try scene.row(old.token.id).end == nil)
        scene.clock.now += 1
        try await scene.life.performMaintenance(at: .at(scene.now))
        #expect(try scene.deployment.store.session(old.token.id) == nil)
        #expect(try scene.row(young.token.id).end == nil)
        // Without the policy, age alone deletes nothing.
        let plain = try SessionScene(["session-idle=300d"])
        let session = try await plain.signIn(plain.addAccount("alice"))
        plain.clock.now += 299 * 86_400
        try await plain.life.performMaintenance(at: .at(plain.now))
        #expect(try plain.row(session.token.id).end == nil)
    }

    @Test("a store that fails closes the gate to sessions once something may have changed")
    func failingStore() async throws {
        let scene = try SessionScene()
        let session = try await scene.signIn(scene.addAccount("alice"))
        let store = FailingStore(
            StorePlace.sqlite(path: scene.deployment.folder.database).open(
                authenticatingBy: scene.deployment.rows))
        let live = try SessionDirectory(
            scene.deployment, keys: scene.keys, reader: store, writer: scene.writer)
        #expect(try live.session(for: session.token) != nil)
        store.fails = true
        #expect(try live.session(for: session.token) != nil, "unchanged, so memory answers")
        scene.deployment.generation.advance()
        #expect(throws: OperationalError.self) { try live.session(for: session.token) }
        store.fails = false
        #expect(try live.session(for: session.token) != nil)
    }

    @Test("a policy's token lifetime is the next request's")
    func lifetime() async throws {
        let scene = try SessionScene()
        let session = try await scene.signIn(scene.addAccount("alice"))
        scene.clock.now += 7_199
        #expect(try await scene.refusal(of: session) == nil)
        scene.clock.now += 1
        #expect(try await scene.refusal(of: session)?.code == .tokenExpired)
        try scene.deployment.setPolicy(["token-lifetime=3h"], of: scene.app)
        #expect(try await scene.refusal(of: session) == nil)
    }

    @Test(
        "a policy change during the lookup of a session applies to the next request"
    )
    func policyMeanwhile() async throws {
        let scene = try SessionScene()
        let session = try await scene.signIn(scene.addAccount("alice"))
        let store = FailingStore(
            StorePlace.sqlite(path: scene.deployment.folder.database).open(
                authenticatingBy: scene.deployment.rows))
        let live = try SessionDirectory(
            scene.deployment, keys: scene.keys, reader: store, writer: scene.writer)
        let changes = Atomic(0)
        store.meanwhile.withLock {
            $0 = {
                // At this point the policy has been read and the account has not; another request reloads
                // from the store.
                guard (try? scene.deployment.setPolicy(["token-lifetime=3h"], of: scene.app)) != nil,
                    (try? live.refreshIfChanged()) != nil
                else { return }
                changes.add(1, ordering: .relaxed)
            }
        }
        #expect(
            try live.session(for: session.token)?.0.expires == scene.now + 7_200,
            "worked out by the one before")
        #expect(changes.load(ordering: .relaxed) == 1, "which changed in between")
        #expect(try live.session(for: session.token)?.0.expires == scene.now + 10_800)
    }

    @Test("a policy whose author died before he could tell is found by the timer")
    func policyUntold() async throws {
        let scene = try SessionScene()
        let session = try await scene.signIn(scene.addAccount("alice"))
        #expect(try scene.live.session(for: session.token)?.0.expires == scene.now + 7_200)
        let draft = scene.deployment.auditDraft(for: .appPolicy, on: .app(scene.app))
        let changed = try scene.deployment.store.change(
            scene.app, applying: [("token-lifetime", .text("3h"))], recording: draft)
        #expect(changed == .yes)
        #expect(try scene.live.session(for: session.token)?.0.expires == scene.now + 7_200, "nobody counted")
        try scene.keys.reconcile()
        try scene.live.reconcile()
        #expect(try scene.live.session(for: session.token)?.0.expires == scene.now + 10_800)
    }

    @Test("a login that was overtaken by a change of its account begins nothing")
    func overtaken() async throws {
        let scene = try SessionScene()
        let account = try scene.addAccount("alice")
        let draft = scene.deployment.auditDraft(for: .accountLock, on: .account(account.name, of: scene.app))
        _ = try scene.deployment.store.change(
            account.number, if: .anything, applying: .lock, at: scene.now, recording: draft)
        let refusal = await #expect(throws: Refusal.self) { try await scene.signIn(account) }
        #expect(refusal?.code == .wrongCredentials)
        #expect(scene.live.counts == (0, 0))
    }

    private func hex(_ id: SessionID) -> String { Hex.encode(id.bytes.span) }
}

extension SessionScene {
    /// Executes SQL on the database directly, as an attacker with write access does.
    fileprivate func execute(_ sql: String) throws {
        var database: OpaquePointer?
        try #require(sqlite3_open(deployment.folder.database, &database) == SQLITE_OK)
        defer { sqlite3_close(database) }
        try #require(sqlite3_exec(database, sql, nil, nil, nil) == SQLITE_OK)
        try #require(sqlite3_changes(database) == 1)
    }
}

@Suite struct AccountIdentityTests {
    @Test(
        "what the backend is told of a name",
        arguments: [
            ("alice", nil, "name:alice"), ("alice@example.com", nil, "name:alice@example.com"),
            ("a b", nil, "name:a%20b"), ("50%", nil, "name:50%25"), ("zürich", nil, "name:z%C3%BCrich"),
            ("42", nil, "name:42"), ("42a", nil, "name:42a"), ("id:42", nil, "name:id:42"),
            ("alice", 42, "id:42"),
        ] as [(String, Int64?, String)])
    func subject(_ row: (name: String, userID: Int64?, subject: String)) throws {
        let app = try #require(AppName("demo"))
        let account = Account(
            number: 7, app: app, name: try AccountName(normalizing: row.name), userID: row.userID, created: 1)
        let identity = AccountIdentity(account)
        #expect(identity.subject == row.subject && identity.number == 7 && identity.userID == row.userID)
    }

    @Test(
        "what a legacy client may state as its user", arguments: ["alice", "42", "42a", "0x2a", "42e0", "e5"])
    func stated(_ name: String) throws {
        let app = try #require(AppName("demo"))
        func isStated(_ user: String, by userID: Int64?, number: Int64 = 7) throws -> Bool {
            let account = Account(
                number: number, app: app, name: try AccountName(normalizing: name), userID: userID, created: 1
            )
            return AccountIdentity(account).isStated(as: Array(user.utf8).span)
        }
        #expect(try isStated("2000000007", by: nil), "the number that its clients received")
        #expect(
            try isStated(name, by: nil) == ["alice", "e5"].contains(name), "no name that reads as a number")
        for other in ["", "42", "7", "2000000008", "02000000007", "name:\(name)", "2e9"] where other != name {
            #expect(try !isStated(other, by: nil), "\(other)")
        }
        #expect(try isStated("42", by: 42) && !isStated("2000000007", by: 42))
        if name != "42" { #expect(try !isStated(name, by: 42)) }
        #expect(try !isStated("2147483648", by: nil, number: 147_483_648), "the numbers are used up")
    }
}
