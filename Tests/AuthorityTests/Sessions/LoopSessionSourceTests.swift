import CountersignGate
import CountersignHandshake
import CountersignSchemes
import CountersignWire
import Testing

@testable import CountersignAuthority

/// An event loop never reads the store of sessions itself where that is a server: what is not in memory is
/// noted, read on another thread, and found when the judgement begins again.
@Suite struct LoopSessionSourceTests {
    @Test("the first request of a session waits for a lookup, and the next one does not")
    func coldThenWarm() async throws {
        let scene = try SessionScene()
        let session = try await scene.signIn(scene.addAccount("anna"))
        scene.lookups.begin(with: nil)
        #expect(throws: OperationalError.needsStore) { try scene.lookups.session(for: session.token) }
        let lookup = try #require(scene.lookups.take())
        #expect(!scene.lookups.isNoted)
        scene.lookups.begin(with: try await lookup())
        #expect(try scene.lookups.session(for: session.token)?.0.id == session.token.id)
        #expect(!scene.lookups.isNoted)
    }

    @Test("a token of no session, or of an epoch that is not kept, is refused without a lookup")
    func unknownToken() async throws {
        let scene = try SessionScene()
        let session = try await scene.signIn(scene.addAccount("anna"))
        #expect(try await scene.refusal(of: session) == nil)
        scene.lookups.begin(with: nil)
        let unknown = SessionToken(id: scene.life.newID(), epoch: 0)
        #expect(try scene.lookups.session(for: unknown) == nil)
        let later = SessionToken(id: session.token.id, epoch: 7)
        #expect(try scene.lookups.session(for: later) == nil)
        #expect(!scene.lookups.isNoted)
    }

    @Test("a finding serves its own judgement only")
    func otherJudgement() async throws {
        let scene = try SessionScene(["upload-tickets=4"])
        let session = try await scene.signIn(scene.addAccount("anna"))
        let text = try await ticket(of: session, in: scene)
        scene.lookups.begin(with: nil)
        #expect(throws: OperationalError.needsStore) { try scene.lookups.uploadTicket(text.span) }
        let lookup = try #require(scene.lookups.take())
        let finding = try await lookup()
        // Another request of the loop is judged meanwhile.
        scene.lookups.begin(with: nil)
        #expect(throws: OperationalError.needsStore) { try scene.lookups.uploadTicket(text.span) }
        scene.lookups.begin(with: finding)
        #expect(try scene.lookups.uploadTicket(text.span) != nil)
        // Nor does it serve another lookup of the same judgement.
        let other = try await ticket(of: session, in: scene)
        #expect(throws: OperationalError.needsStore) { try scene.lookups.uploadTicket(other.span) }
    }

    /// A change after which a device's key must be looked up again.
    enum Change: CaseIterable { case termination, refresh, deletion, generation, generationThatWasFollowed }

    @Test("a device's key is looked up once, and again after a change", arguments: Change.allCases)
    func deviceKey(after change: Change) async throws {
        let scene = try SessionScene()
        var session = try await scene.signIn(scene.addAccount("anna"))
        let other = try await scene.signIn(scene.addAccount("bert"))
        for id in [session.token.id, other.token.id] {
            scene.lookups.begin(with: nil)
            #expect(throws: OperationalError.needsStore) { try scene.lookups.deviceKey(of: id) }
            let lookup = try #require(scene.lookups.take())
            _ = try await lookup()
        }
        scene.lookups.begin(with: nil)
        let keys = [session.device.device.signingKey, other.device.device.signingKey]
        #expect(keys[0] != keys[1])
        #expect(try scene.lookups.deviceKey(of: session.token.id) == keys[0])
        #expect(try scene.lookups.deviceKey(of: other.token.id) == keys[1])
        #expect(!scene.lookups.isNoted)
        let id = session.token.id
        switch change {
        case .termination:
            try await scene.life.end(.one(id), with: SessionTermination(.signedOut, at: scene.now))
        case .refresh: try await scene.refresh(&session)
        case .deletion: scene.live.forget([id])
        case .generation: scene.deployment.generation.advance()
        case .generationThatWasFollowed:
            scene.deployment.generation.advance()
            try scene.live.refreshIfChanged()
        }
        #expect(throws: OperationalError.needsStore) { try scene.lookups.deviceKey(of: id) }
        // A change of the session concerns no other.
        if change != .generation, change != .generationThatWasFollowed {
            scene.lookups.begin(with: nil)
            #expect(try scene.lookups.deviceKey(of: other.token.id) == keys[1])
        }
    }

    @Test("a key that was read before a change is not kept after it")
    func lateDeviceKey() async throws {
        let scene = try SessionScene()
        let session = try await scene.signIn(scene.addAccount("anna"))
        let row = try scene.row(session.token.id)
        let key = session.device.device.signingKey
        let shard = scene.live.shard(of: row.id)
        let season = shard.cacheGeneration
        shard.clearCaches()
        shard.cache(key, from: row, generation: season)
        #expect(shard.cachedDeviceKey(of: row.id) == nil)
        try await scene.life.end(.one(row.id), with: SessionTermination(.signedOut, at: scene.now))
        shard.cache(key, from: row, generation: shard.cacheGeneration)
        #expect(shard.cachedDeviceKey(of: row.id) == nil)
        shard.cache(key, from: try scene.row(row.id), generation: shard.cacheGeneration)
        #expect(shard.cachedDeviceKey(of: row.id) == key)
        shard.clearCaches()
        #expect(shard.cachedDeviceKey(of: row.id) == nil)
    }

    @Test("a node whose lease has lapsed uses no key in memory")
    func deviceKeyNeedsTheLease() async throws {
        let scene = try SessionScene()
        let session = try await scene.signIn(scene.addAccount("anna"))
        let lease = NodeLease()
        lease.renew(until: .max)
        let directory = try SessionDirectory(
            scene.deployment, keys: scene.keys, reader: scene.deployment.store, writer: scene.writer,
            lease: lease)
        let key = session.device.device.signingKey
        #expect(try directory.deviceKey(of: session.token.id) == key)
        #expect(try directory.deviceKey(of: session.token.id, reads: .forbidden) == key)
        lease.lapse()
        #expect(throws: OperationalError.self) { try directory.deviceKey(of: session.token.id) }
    }

    @Test("a ticket's session that ended during the lookup is looked up again")
    func endedMeanwhile() async throws {
        let scene = try SessionScene(["upload-tickets=4"])
        let session = try await scene.signIn(scene.addAccount("anna"))
        let text = try await ticket(of: session, in: scene)
        scene.lookups.begin(with: nil)
        #expect(throws: OperationalError.needsStore) { try scene.lookups.uploadTicket(text.span) }
        let lookup = try #require(scene.lookups.take())
        let finding = try await lookup()
        scene.lookups.begin(with: finding)
        #expect(try scene.lookups.uploadTicket(text.span)?.1.id == session.token.id)
        try await scene.life.end(
            .one(session.token.id), with: SessionTermination(.signedOut, at: scene.now))
        scene.lookups.begin(with: finding)
        #expect(throws: OperationalError.needsStore) { try scene.lookups.uploadTicket(text.span) }
        #expect(scene.lookups.isNoted)
    }

    private func ticket(of session: TestSession, in scene: SessionScene) async throws -> [UInt8] {
        let found = try #require(try scene.live.session(for: session.token)).0
        let upload = UploadDescription(
            method: Array("PUT".utf8), authority: Array(SessionScene.authority.utf8),
            target: Array("/files/a".utf8), contentType: nil, length: 0,
            sha256: [UInt8](repeating: 0, count: 32))
        return try await Array(
            scene.life.issueTicket(
                for: upload, to: found, from: scene.release(), expires: scene.now + 600, at: scene.now
            ).text.utf8)
    }

    @Test("a lookup that fails refuses the request, and its nonce is not spent")
    func failedLookup() async throws {
        let scene = try SessionScene()
        let session = try await scene.signIn(scene.addAccount("anna"))
        let request = try session.request(at: scene.now, nonce: "a nonce of the test")
        scene.lookups.begin(with: nil)
        #expect(throws: OperationalError.needsStore) { try scene.lookups.session(for: session.token) }
        let judgement = scene.gate.beginJudgement()
        defer { scene.gate.endJudgement(judgement) }
        #expect(throws: Refusal.self) { try scene.gate.judgeIfReady(request, recordingIn: judgement) }
        let lookup = try #require(scene.gate.takeDeferredLookup())
        #expect(scene.gate.takeDeferredLookup() == nil)
        try await scene.gate.finish(lookup, for: judgement)
        let caller = try scene.gate.judgeIfReady(request, recordingIn: judgement)
        #expect(caller?.session?.id == session.token.id)
    }
}
