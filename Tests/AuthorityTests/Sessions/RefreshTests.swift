import CountersignGate
import CountersignHandshake
import CountersignSeal
import CountersignWire
import Testing

@testable import CountersignAuthority

@Suite struct RefreshTests {
    @Test("both ends come to the same key, epoch by epoch")
    func ratchet() async throws {
        let scene = try SessionScene()
        var session = try await scene.signIn(scene.addAccount("alice"))
        #expect(try await scene.refusal(of: session) == nil)
        for epoch in 1...5 as ClosedRange<UInt32> {
            let left = session
            try await scene.refresh(&session)
            #expect(session.token.epoch == epoch)
            #expect(
                try await scene.refusal(of: left) == nil, "until the new key is used, the old one is good")
            #expect(try await scene.refusal(of: session) == nil)
        }
    }

    @Test("a lost answer is given again, however often and however late")
    func lostAnswers() async throws {
        let scene = try SessionScene()
        var session = try await scene.signIn(scene.addAccount("alice"))
        var recovered = 0
        for _ in 0..<rounds(1_000, short: 60) {
            let attempt = scene.newAttempt()
            let lost = try await scene.answer(to: session, attempt: attempt)
            scene.clock.now += 100
            let again = try await scene.answer(to: session, attempt: attempt)
            #expect(again.ephemeral == lost.ephemeral && again.token == lost.token)
            // A client that lost its attempt makes another, and gets the same response.
            let other = try await scene.answer(to: session)
            #expect(other.ephemeral == lost.ephemeral)
            session.adopt(other)
            if try await scene.refusal(of: session) == nil { recovered += 1 }
        }
        #expect(recovered == rounds(1_000, short: 60))
    }

    @Test("a refresh with the key that was offered is that key's first use")
    func refreshConfirms() async throws {
        let scene = try SessionScene()
        var session = try await scene.signIn(scene.addAccount("alice"))
        try await scene.refresh(&session)
        try await scene.refresh(&session)
        #expect(session.token.epoch == 2)
        #expect(try scene.credentials(session.token.id).epoch == 1)
        #expect(try await scene.refusal(of: session) == nil)
    }

    @Test("an old key is let in for 30 seconds after the new one's first use, and then told that it ran out")
    func grace() async throws {
        let scene = try SessionScene()
        var session = try await scene.signIn(scene.addAccount("alice"))
        let left = session
        try await scene.refresh(&session)
        scene.clock.now += 1_000
        #expect(try await scene.refusal(of: left) == nil)
        #expect(try await scene.refusal(of: session) == nil)
        scene.clock.now += 29
        #expect(try await scene.refusal(of: left) == nil)
        scene.clock.now += 1
        #expect(try await scene.refusal(of: left)?.code == .tokenExpired)
        #expect(try await scene.refusal(of: session) == nil)
    }

    @Test("the attempt that led here is harmless, another one from there ends the session")
    func reuse() async throws {
        let scene = try SessionScene()
        var session = try await scene.signIn(scene.addAccount("alice"))
        let (left, attempt) = (session, scene.newAttempt())
        try await scene.refresh(&session, attempt: attempt)
        #expect(try await scene.refusal(of: session) == nil)
        scene.clock.now += 5
        let repeated = await #expect(throws: Refusal.self) {
            try await scene.answer(to: left, attempt: attempt)
        }
        #expect(repeated?.code == .replayed)
        #expect(try await scene.refusal(of: session) == nil, "and changes nothing")

        let reused = await #expect(throws: Refusal.self) { try await scene.answer(to: left) }
        #expect(reused?.endedSession?.reason == "reused")
        #expect(try await scene.refusal(of: session)?.endedSession?.reason == "reused")
        let record = try #require(try scene.deployment.auditRecords(last: 1).first)
        #expect(String(decoding: record.record, as: UTF8.self).contains(#""action":"session.reuse""#))
        #expect(String(decoding: record.record, as: UTF8.self).contains(#""actor":{"kind":"server"}"#))
    }

    @Test("from an epoch that is long gone too, by the device's word alone")
    func reuseOfOldEpochs() async throws {
        let scene = try SessionScene()
        var session = try await scene.signIn(scene.addAccount("alice"))
        let (left, attempt) = (session, scene.newAttempt())
        try await scene.refresh(&session, attempt: attempt)
        for _ in 0..<3 { try await scene.refresh(&session) }
        #expect(try await scene.refusal(of: session) == nil)
        scene.clock.now += 5
        // The captured request that was held back belongs to a recorded attempt.
        let captured = await #expect(throws: Refusal.self) {
            try await scene.answer(to: left, attempt: attempt)
        }
        #expect(captured?.code == .replayed)
        var stranger = left.refresh(scene.newAttempt(), at: scene.now)
        stranger.signature = try TestDevice().signing.sign(stranger.transcript.span) ?? []
        let request = stranger
        let forged = await #expect(throws: Refusal.self) {
            try await scene.life.refresh(request, at: scene.now)
        }
        #expect(forged?.code == .badSignature)
        #expect(try await scene.refusal(of: session) == nil)
        let reused = await #expect(throws: Refusal.self) { try await scene.answer(to: left) }
        #expect(reused?.endedSession?.reason == "reused")
    }

    @Test("a first use that is not written yet counts all the same")
    func firstUseCountsAtOnce() async throws {
        let scene = try SessionScene()
        var session = try await scene.signIn(scene.addAccount("alice"))
        let left = session
        try await scene.refresh(&session)
        // The gate has accepted the new token; the writer may not have recorded it yet.
        #expect(try await scene.refusal(of: session) == nil)
        let reused = await #expect(throws: Refusal.self) { try await scene.answer(to: left) }
        #expect(reused?.endedSession?.reason == "reused")
    }

    @Test("the session is idle for too long, and is renewed no more")
    func idle() async throws {
        let scene = try SessionScene(["session-idle=1h"])
        let session = try await scene.signIn(scene.addAccount("alice"))
        scene.clock.now += 3_599
        var renewed = session
        try await scene.refresh(&renewed)
        scene.clock.now += 3_600
        let refusal = await #expect(throws: Refusal.self) { try await scene.answer(to: renewed) }
        #expect(refusal?.endedSession == Refusal.EndedSession(reason: "expired", at: scene.now))
        #expect(try await scene.refusal(of: session)?.endedSession?.reason == "expired")
    }

    @Test("a session ends at its greatest age, however often it is renewed")
    func greatestAge() async throws {
        let scene = try SessionScene(["session-max=1h", "token-lifetime=40m"])
        let began = scene.now
        var session = try await scene.signIn(scene.addAccount("alice"))
        scene.clock.now += 1_800
        try await scene.refresh(&session)
        let row = try scene.row(session.token.id)
        #expect(try scene.life.idleEnd(of: row) == began + 3_600)
        #expect(try await scene.refusal(of: session) == nil)
        scene.clock.now = began + 3_599
        #expect(try await scene.refusal(of: session) == nil)
        let answer = try await scene.answer(to: session)
        #expect(answer.expires == began + 3_600 && answer.idleEnd == began + 3_600, "no token outlives it")
        scene.clock.now = began + 3_600
        let end = Refusal.EndedSession(reason: "expired", at: began + 3_600)
        #expect(try await scene.refusal(of: session)?.endedSession == end)
        let refusal = await #expect(throws: Refusal.self) { try await scene.answer(to: session) }
        #expect(refusal?.endedSession == end)
    }

    @Test(
        "a clock that goes back ends nothing and traps nowhere",
        arguments: [-100, -10_000_000, -1_799_999_000] as [Int64])
    func clockGoesBack(_ step: Int64) async throws {
        let scene = try SessionScene()
        var session = try await scene.signIn(scene.addAccount("alice"))
        scene.clock.now += step
        try await scene.refresh(&session)
        #expect(try await scene.refusal(of: session) == nil)
        try await scene.life.performMaintenance(at: scene.now)
        try await scene.refresh(&session)
        #expect(try await scene.refusal(of: session) == nil)
    }
}
