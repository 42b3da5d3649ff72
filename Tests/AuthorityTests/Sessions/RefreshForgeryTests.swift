import CountersignGate
import CountersignHandshake
import CountersignSeal
import CountersignWire
import Testing

@testable import CountersignAuthority

/// Attacks on a refresh by a man in the middle that has the app's release key and every body sent so far.
@Suite struct RefreshForgeryTests {
    @Test("each part of the transcript is bound by both signatures")
    func parts() async throws {
        let scene = try SessionScene(["slots=unlimited"])
        let account = try scene.addAccount("alice")
        let session = try await scene.signIn(account)
        let other = try await scene.signIn(account, from: "r_android")
        let good = session.refresh(scene.newAttempt(), at: scene.now)
        var forged: [RefreshRequest] = []
        func add(_ change: (inout RefreshRequest) -> Void) {
            var request = good
            change(&request)
            forged.append(request)
        }
        add { $0.attempt[0] ^= 1 }
        add { $0.time += 1 }
        add { $0.counter = 2 }
        add { $0.nonce[0] ^= 1 }
        add { $0.nonce = [] }
        add { $0.purpose = .reportReuse }
        add { $0.token.id = other.token.id }
        add { $0.release = other.release }
        add { $0.mac[31] ^= 1 }
        add { $0.mac = [] }
        add { $0.signature[63] ^= 1 }
        add { $0.signature = other.refresh($0.attempt, at: $0.time).signature }
        add { $0.mac = other.refresh($0.attempt, at: $0.time).mac }
        for request in forged {
            let refusal = await #expect(throws: Refusal.self) {
                try await scene.life.refresh(request, at: scene.now)
            }
            #expect(refusal?.code == .badSignature)
        }
        #expect(try scene.credentials(session.token.id).successor == nil, "nothing was done")
        _ = try await scene.life.refresh(good, at: scene.now)
    }

    @Test("a session is renewed from its own app and platform only")
    func otherPlatform() async throws {
        let scene = try SessionScene(["slots=unlimited"])
        var session = try await scene.signIn(scene.addAccount("alice"))
        session.release = try scene.release("r_android")
        let moved = session
        let refusal = await #expect(throws: Refusal.self) { try await scene.answer(to: moved) }
        #expect(refusal?.code == .badSignature)
    }

    @Test("what was captured does nothing: it is old, or was taken, or gives what the client gets")
    func captured() async throws {
        let scene = try SessionScene()
        var session = try await scene.signIn(scene.addAccount("alice"))
        let attempt = scene.newAttempt()
        let (left, captured) = (session, session.refresh(attempt, at: scene.now))
        // The captured request arrives before the client's own; the client repeats it with a later time and
        // continues.
        _ = try await scene.life.refresh(captured, at: scene.now)
        let same = await #expect(throws: Refusal.self) {
            try await scene.life.refresh(captured, at: scene.now)
        }
        #expect(same?.code == .replayed)
        let keptBack = left.refresh(attempt, at: scene.now + 2)
        try await scene.refresh(&session, attempt: attempt, time: scene.now + 1)
        #expect(try await scene.refusal(of: session) == nil)
        for request in [captured, keptBack] {
            let refusal = await #expect(throws: Refusal.self) {
                try await scene.life.refresh(request, at: scene.now)
            }
            #expect(refusal?.code == .replayed)
        }
        scene.clock.now += 63
        for request in [captured, keptBack] {
            let refusal = await #expect(throws: Refusal.self) {
                try await scene.life.refresh(request, at: scene.now)
            }
            #expect(refusal?.code == .stale)
        }
        #expect(try await scene.refusal(of: session) == nil)
    }

    @Test("who cannot sign spends no attempt of the client's")
    func spending() async throws {
        let scene = try SessionScene()
        let session = try await scene.signIn(scene.addAccount("alice"))
        let attempt = scene.newAttempt()
        var guessed = session.refresh(attempt, at: scene.now)
        guessed.mac[0] ^= 1
        let request = guessed
        let refusal = await #expect(throws: Refusal.self) {
            try await scene.life.refresh(request, at: scene.now)
        }
        #expect(refusal?.code == .badSignature)
        _ = try await scene.answer(to: session, attempt: attempt)
    }

    @Test(
        "times around now",
        arguments: [(-61, true), (-60, false), (60, false), (61, true)] as [(Int64, Bool)])
    func freshness(_ row: (offset: Int64, isStale: Bool)) async throws {
        let scene = try SessionScene()
        let session = try await scene.signIn(scene.addAccount("alice"))
        do {
            _ = try await scene.answer(to: session, time: scene.now + row.offset)
            #expect(!row.isStale)
        } catch {
            #expect(error.code == .stale && row.isStale)
        }
    }

    @Test("who copied the root has a key that is of no use after the next refresh")
    func copiedRoot() async throws {
        let scene = try SessionScene()
        var session = try await scene.signIn(scene.addAccount("alice"))
        let thief = session
        // The attacker has the refresh's response, but not the device's agreement key.
        let renewed = try await scene.answer(to: session)
        session.adopt(renewed)
        var guessing = TestSession(
            device: try TestDevice(), release: thief.release, token: thief.token, root: thief.root)
        guessing.adopt(renewed)
        #expect(try await scene.refusal(of: session) == nil)
        #expect(try await scene.refusal(of: guessing)?.code == .badSignature)
        scene.clock.now += 31
        #expect(try await scene.refusal(of: thief)?.code == .tokenExpired)
    }
}
