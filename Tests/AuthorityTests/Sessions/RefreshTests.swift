import CountersignGate
import CountersignHandshake
import CountersignSeal
import CountersignWire
import ScriptedClock
import TestRounds
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
            session.adopt(again)
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
        let held = left.refresh(attempt, at: scene.now)
        try await scene.refresh(&session, attempt: attempt)
        for _ in 0..<3 { try await scene.refresh(&session) }
        #expect(try await scene.refusal(of: session) == nil)
        scene.clock.now += 5
        // A copy that was held back has a counter that is lower than what followed.
        let captured = await #expect(throws: Refusal.self) {
            try await scene.life.refresh(held, at: scene.now)
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
        try await scene.life.performMaintenance(at: .at(scene.now))
        try await scene.refresh(&session)
        #expect(try await scene.refusal(of: session) == nil)
    }

    @Test("a session's refreshes write a bounded number of rows, and no copy uses that up")
    func bounded() async throws {
        let scene = try SessionScene(["slots=unlimited"])
        let account = try scene.addAccount("alice")
        let (session, other) = (try await scene.signIn(account), try await scene.signIn(account))
        let attempt = scene.newAttempt()
        func refusal(of request: RefreshRequest) async -> Refusal? {
            do throws(Refusal) {
                _ = try await scene.life.refresh(request, at: scene.now)
                return nil
            } catch {
                return error
            }
        }
        let copied = session.refresh(attempt, at: scene.now)
        #expect(await refusal(of: copied) == nil)
        for _ in 0..<200 { #expect(await refusal(of: copied)?.code == .replayed) }
        for number in 2...64 {
            #expect(await refusal(of: session.refresh(attempt, at: scene.now)) == nil, "\(number)")
        }
        let before = try scene.row(session.token.id)
        for _ in 0..<20 {
            let refused = await refusal(of: session.refresh(attempt, at: scene.now))
            #expect(refused?.code == .unavailable && refused?.retryAfter == 1)
        }
        #expect(try scene.row(session.token.id) == before)
        #expect(await refusal(of: other.refresh(scene.newAttempt(), at: scene.now)) == nil, "another session")
        scene.clock.now += 1
        for number in 1...5 {
            let refused = await refusal(of: session.refresh(attempt, at: scene.now))
            #expect((refused == nil) == (number < 5))
        }
        // A theft is reported all the same.
        let report = session.refresh(attempt, at: scene.now, purpose: .reportReuse)
        #expect(await refusal(of: report)?.endedSession?.reason == "reused")
    }

    @Test("a limiter forgets the sessions that refresh no more, whatever the clock does")
    func limiter() throws {
        let limiter = RefreshLimiter()
        func newID() throws -> SessionID {
            let bytes = SystemRandom().bytes(SessionID.count)
            let id = SessionID(bytes.span)
            return try #require(id)
        }
        for number in 0..<20_000 {
            let id = try newID()
            #expect(limiter.admit(id, at: Int64(number / 10)))
        }
        #expect(limiter.count <= 4_096)
        let id = try newID()
        for _ in 0..<64 { #expect(limiter.admit(id, at: 100)) }
        for time in [100, 50, 0, -1_000, .min + 200] as [Int64] { #expect(!limiter.admit(id, at: time)) }
        #expect(limiter.admit(id, at: .max - 200))
    }

    @Test("another attempt for a successor that was offered ends the session: a device keeps its attempt")
    func anotherAttempt() async throws {
        let scene = try SessionScene()
        let session = try await scene.signIn(scene.addAccount("alice"))
        _ = try await scene.answer(to: session)
        let refusal = await #expect(throws: Refusal.self) { try await scene.answer(to: session) }
        #expect(refusal?.endedSession?.reason == "reused")
    }

    /// Fails under a rule that remembers the last eight attempts: the held copy's attempt is forgotten.
    @Test("a copy that is held back while refusals provoke more refreshes ends nothing")
    func heldBack() async throws {
        let scene = try SessionScene()
        var session = try await scene.signIn(scene.addAccount("alice"))
        let held = session.refresh(scene.newAttempt(), at: scene.now)
        let (left, attempt) = (session, scene.newAttempt())
        for second in 1...9 as ClosedRange<Int64> {
            _ = try await scene.answer(to: left, attempt: attempt, time: scene.now + second)
        }
        try await scene.refresh(&session, attempt: attempt, time: scene.now + 10)
        #expect(try await scene.refusal(of: session) == nil)
        let refusal = await #expect(throws: Refusal.self) {
            try await scene.life.refresh(held, at: scene.now)
        }
        #expect(refusal?.code == .replayed)
        #expect(refusal?.refreshProgress?.counter == 11 && refusal?.refreshProgress?.epoch == 1)
        #expect(refusal?.refreshProgress?.transcript == held.transcriptDigest)
        #expect(try await scene.refusal(of: session) == nil)
        for _ in 0..<2 { try await scene.refresh(&session) }
    }

    @Test("of two holders of a vault the second is found, whoever it is and however far the first has come")
    func twoHolders() async throws {
        for rounds in 1...3 {
            for isUsed in [false, true] {
                let scene = try SessionScene()
                var first = try await scene.signIn(scene.addAccount("alice"))
                let copied = first
                for number in 1...rounds {
                    let attempt = scene.newAttempt()
                    let request = first.refresh(attempt, at: scene.now, counter: Int64(number))
                    first.adopt(try await scene.life.refresh(request, at: scene.now))
                    if isUsed { #expect(try await scene.refusal(of: first) == nil) }
                }
                // The same counters, since both continue from the copied one; what is told leads to a report.
                let second = copied.refresh(scene.newAttempt(), at: scene.now, counter: 1)
                let found = await #expect(throws: Refusal.self) {
                    try await scene.life.refresh(second, at: scene.now)
                }
                if rounds > 1 {
                    #expect(found?.refreshProgress?.counter == Int64(rounds))
                    let report = copied.refresh(
                        scene.newAttempt(), at: scene.now, counter: Int64(rounds) + 1, purpose: .reportReuse)
                    let ended = await #expect(throws: Refusal.self) {
                        try await scene.life.refresh(report, at: scene.now)
                    }
                    #expect(ended?.endedSession?.reason == "reused")
                } else {
                    #expect(found?.endedSession?.reason == "reused")
                }
                #expect(try await scene.refusal(of: first)?.endedSession?.reason == "reused")
            }
        }
    }

    @Test("the highest counter is in the store: a restart forgets neither it nor its transcript")
    func counterIsDurable() async throws {
        let scene = try SessionScene()
        let session = try await scene.signIn(scene.addAccount("alice"))
        let attempt = scene.newAttempt()
        for _ in 0..<3 { _ = try await scene.answer(to: session, attempt: attempt) }
        let request = session.refresh(attempt, at: scene.now)
        _ = try await scene.life.refresh(request, at: scene.now)
        let stored = try scene.credentials(session.token.id)
        #expect(stored.counter == 4 && stored.counterDigest == request.transcriptDigest)
        #expect(stored.successor?.attempts == [attempt])
    }

    @Test("the top of the counters leaves room for the other holder")
    func highestCounter() async throws {
        let scene = try SessionScene()
        var thief = try await scene.signIn(scene.addAccount("alice"))
        let owner = thief
        let top = RefreshTranscript.highestCounter
        let request = thief.refresh(scene.newAttempt(), at: scene.now, counter: top)
        thief.adopt(try await scene.life.refresh(request, at: scene.now))
        let told = await #expect(throws: Refusal.self) { try await scene.answer(to: owner) }
        #expect(told?.refreshProgress?.counter == top)
        let report = owner.refresh(
            scene.newAttempt(), at: scene.now, counter: top + 1, purpose: .reportReuse)
        let ended = await #expect(throws: Refusal.self) {
            try await scene.life.refresh(report, at: scene.now)
        }
        #expect(ended?.endedSession?.reason == "reused")
    }
}
