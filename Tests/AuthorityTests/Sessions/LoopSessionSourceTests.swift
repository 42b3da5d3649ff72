import CountersignGate
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
        let scene = try SessionScene()
        let session = try await scene.signIn(scene.addAccount("anna"))
        scene.lookups.begin(with: nil)
        #expect(throws: OperationalError.needsStore) { try scene.lookups.deviceKey(of: session.token.id) }
        let lookup = try #require(scene.lookups.take())
        let finding = try await lookup()
        // Another request of the loop is judged meanwhile.
        scene.lookups.begin(with: nil)
        #expect(throws: OperationalError.needsStore) { try scene.lookups.deviceKey(of: session.token.id) }
        scene.lookups.begin(with: finding)
        #expect(try scene.lookups.deviceKey(of: session.token.id) != nil)
        #expect(throws: OperationalError.needsStore) { try scene.lookups.deviceKey(of: scene.life.newID()) }
    }

    @Test("a ticket's session that ended during the lookup is looked up again")
    func endedMeanwhile() async throws {
        let scene = try SessionScene(["upload-tickets=4"])
        let session = try await scene.signIn(scene.addAccount("anna"))
        let found = try #require(try scene.live.session(for: session.token)).0
        let upload = UploadDescription(
            method: Array("PUT".utf8), authority: Array(SessionScene.authority.utf8),
            target: Array("/files/a".utf8), contentType: nil, length: 0,
            sha256: [UInt8](repeating: 0, count: 32))
        let text = try await Array(
            scene.life.issueTicket(
                for: upload, to: found, from: scene.release(), expires: scene.now + 600, at: scene.now
            ).text.utf8)
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
