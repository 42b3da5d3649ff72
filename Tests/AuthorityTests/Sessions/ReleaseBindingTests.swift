import CountersignGate
import CountersignHandshake
import CountersignSchemes
import CountersignSeal
import CountersignWire
import Testing

@testable import CountersignAuthority

/// A session's key is for the release whose login or refresh made it: a request that names another release is
/// refused as `token-expired`, until a refresh by that release.
@Suite struct ReleaseBindingTests {
    /// The scene's app in another version.
    private func update(_ scene: SessionScene) throws -> AppRelease {
        _ = try scene.deployment.addRelease(
            try draft(scene.app, id: "r_ios2", version: "2.0"), at: scene.now)
        try scene.keys.reconcile()
        return try scene.release("r_ios2")
    }

    @Test("a key does not sign for another release, whose public id anybody can name")
    func anotherRelease() async throws {
        let scene = try SessionScene()
        let session = try await scene.signIn(scene.addAccount("alice"))
        var other = session
        other.release = try update(scene)
        #expect(try await scene.refusal(of: other)?.code == .tokenExpired)
        #expect(try await scene.refusal(of: session) == nil, "its own release's requests go on")
    }

    @Test("an updated app refreshes, and its old version's key is for the old version until then")
    func update() async throws {
        let scene = try SessionScene()
        var session = try await scene.signIn(scene.addAccount("alice"))
        let old = session
        session.release = try update(scene)
        try await scene.refresh(&session)
        #expect(try await scene.refusal(of: old) == nil, "before the new key's first use")
        #expect(try await scene.refusal(of: session) == nil)
        var claiming = session
        claiming.release = old.release
        #expect(try await scene.refusal(of: claiming)?.code == .tokenExpired)
        // The epoch before is for its own release, too.
        #expect(try await scene.refusal(of: old) == nil, "within the grace")
        var late = old
        late.release = session.release
        #expect(try await scene.refusal(of: late)?.code == .tokenExpired)
        let stored = try scene.credentials(session.token.id)
        #expect(stored.release == session.release.id || stored.successor?.release == session.release.id)
    }

    @Test("an app that is updated between a refresh and its answer goes on by repeating it")
    func updateDuringRefresh() async throws {
        let scene = try SessionScene()
        var session = try await scene.signIn(scene.addAccount("alice"))
        let attempt = scene.newAttempt()
        _ = try await scene.answer(to: session, attempt: attempt)
        session.release = try update(scene)
        session.adopt(try await scene.answer(to: session, attempt: attempt))
        #expect(try await scene.refusal(of: session) == nil)
    }

    @Test("an app that is updated after a refresh's answer goes on by another refresh")
    func updateAfterRefresh() async throws {
        let scene = try SessionScene()
        var session = try await scene.signIn(scene.addAccount("alice"))
        try await scene.refresh(&session)
        session.release = try update(scene)
        #expect(try await scene.refusal(of: session)?.code == .tokenExpired)
        try await scene.refresh(&session)
        #expect(session.token.epoch == 2)
        #expect(try await scene.refusal(of: session) == nil)
    }

    @Test("a retired version neither refreshes nor goes on by a live version's id")
    func retired() async throws {
        let scene = try SessionScene()
        let session = try await scene.signIn(scene.addAccount("alice"))
        var posing = session
        posing.release = try update(scene)
        try scene.deployment.retire(
            session.release.id,
            with: AppRelease.Retirement(at: scene.now - 1, updateURL: "https://example.com/update"))
        try scene.keys.reconcile()
        #expect(try await scene.refusal(of: session)?.code == .updateRequired)
        #expect(try await scene.refusal(of: posing)?.code == .tokenExpired)
        // Its refresh is signed by its own release's key, and refused at the gate.
        var refresh = Draft(
            method: "POST", target: Array("/countersign/v1/token".utf8), authority: SessionScene.authority)
        refresh.body = Array("{}".utf8)
        let own = Credentials(
            keyID: session.release.id,
            key: SigningKey(Secret(copying: Array("secret of r_ios".utf8).span)))
        try MessageSignatures().sign(&refresh, as: own, at: scene.now, nonce: "n")
        let request = refresh.request()
        let refusal = await #expect(throws: Refusal.self) {
            try await scene.gate.judge(request, for: .ownRoute)
        }
        #expect(refusal?.code == .updateRequired)
    }

    @Test("a key whose release is not stored is not accepted")
    func unknownRelease() async throws {
        let scene = try SessionScene()
        let session = try await scene.signIn(scene.addAccount("alice"))
        var device = try scene.credentials(session.token.id)
        let stored = device
        device.release = nil
        _ = try scene.deployment.store.swap(
            session.token.id, from: .device(stored), to: .device(device), at: scene.now)
        try scene.live.reconcile()
        #expect(try await scene.refusal(of: session)?.code == .unavailable)
    }

    /// The judgement of a log-out of the session, named `release`.
    private func endsItself(_ session: TestSession, in scene: SessionScene) async throws -> Bool {
        var draft = Draft(
            method: "POST", target: Array("/countersign/v1/logout".utf8), authority: SessionScene.authority)
        draft.body = Array("{}".utf8)
        let signer = Credentials(session.token, key: session.key, release: session.release.id)
        try MessageSignatures().sign(
            &draft, as: signer, at: scene.now, nonce: "\(UInt64.random(in: 0...UInt64.max))")
        let request = draft.request()
        return try await scene.gate.judge(request, for: .logOut).session?.id == session.token.id
    }

    @Test("every key that is kept ends its session, for any release of the app and however late")
    func logOut() async throws {
        let scene = try SessionScene()
        var session = try await scene.signIn(scene.addAccount("alice"))
        let former = session
        try await scene.refresh(&session)
        let updated = try update(scene)
        var later = session
        later.release = updated
        #expect(try await scene.refusal(of: later)?.code == .tokenExpired)
        #expect(try await endsItself(later, in: scene), "offered to the release before")
        #expect(try await scene.refusal(of: session) == nil)
        scene.clock.now += 40_000
        #expect(try await scene.refusal(of: session)?.code == .tokenExpired)
        for each in [session, later, former] {
            #expect(try await endsItself(each, in: scene), "epoch \(each.token.epoch), late")
        }
        // Its end is still its end.
        try await scene.life.end(.one(session.token.id), with: SessionTermination(.revoked, at: scene.now))
        let ended = session
        let refusal = await #expect(throws: Refusal.self) { try await endsItself(ended, in: scene) }
        #expect(refusal?.code == .sessionEnded)
    }
}
