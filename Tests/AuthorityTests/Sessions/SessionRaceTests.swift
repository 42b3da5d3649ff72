import CountersignGate
import CountersignHandshake
import CountersignWire
import TestRounds
import Testing

@testable import CountersignAuthority

/// Concurrent changes of a session: exactly one of them is first, and the others see its result.
@Suite struct SessionRaceTests {
    @Test("fifty refreshes at once: one successor, and nobody is signed out")
    func manyRefreshes() async throws {
        let scene = try SessionScene()
        var sessions: [TestSession] = []
        for name in ["alice", "bob"] { sessions.append(try await scene.signIn(scene.addAccount(name))) }
        for round in 0..<rounds(200, short: 6) {
            var session = sessions[round % 2]
            let left = session
            let attempt = scene.newAttempt()
            let answers = try await withThrowingTaskGroup(of: RenewedSession?.self) { group in
                for number in 0..<50 {
                    let time = scene.now - 25 + Int64(number)
                    group.addTask {
                        do throws(Refusal) {
                            return try await scene.answer(to: left, attempt: attempt, time: time)
                        } catch {
                            // A copy that arrives after a later one is not answered: a device waits for the
                            // answer to its last copy only.
                            guard error.code == .replayed, error.refreshProgress?.epoch == left.token.epoch
                            else { throw error }
                            return nil
                        }
                    }
                }
                return try await group.reduce(into: [RenewedSession]()) { all, answer in
                    if let answer { all.append(answer) }
                }
            }
            #expect(!answers.isEmpty)
            #expect(Set(answers.map(\.ephemeral)).count == 1, "one successor")
            session.adopt(try #require(answers.first))
            #expect(try await scene.refusal(of: session) == nil)
            #expect(try scene.row(session.token.id).end == nil)
            sessions[round % 2] = session
            scene.clock.now += 200
        }
    }

    @Test(
        "a refresh against an end: whoever comes first, nothing survives",
        arguments: ["logout", "revoke", "disable"])
    func refreshAgainstEnd(_ kind: String) async throws {
        let scene = try SessionScene(["slots=unlimited"])
        var refreshes = 0
        for round in 0..<rounds(1_000, short: 25) {
            let account = try scene.addAccount("account-\(round)")
            let session = try await scene.signIn(account)
            async let renewing = scene.answer(to: session)
            async let ending: Void = scene.end(session, of: account, kind)
            try await ending
            var survivors = [session]
            do {
                var next = session
                next.adopt(try await renewing)
                survivors.append(next)
                refreshes += 1
            } catch let refusal as Refusal {
                #expect(refusal.code == .sessionEnded)
            }
            for survivor in survivors {
                #expect(try await scene.refusal(of: survivor)?.code == .sessionEnded, "\(survivor.token)")
            }
            let late = await #expect(throws: Refusal.self) { try await scene.answer(to: session) }
            #expect(late?.code == .sessionEnded)
        }
        print(
            "measured: \(kind): the refresh came first in \(refreshes) of \(rounds(1_000, short: 25)) rounds")
    }

    @Test("two logins at once, one slot: one session lives")
    func twoLogins() async throws {
        let scene = try SessionScene(["slots=single"])
        let account = try scene.addAccount("alice")
        for _ in 0..<rounds(500, short: 20) {
            async let first = scene.signIn(account)
            async let second = scene.signIn(account, TestDevice(.tablet))
            let sessions = try await [first, second]
            var alive = 0
            for session in sessions {
                let refusal = try await scene.refusal(of: session)
                if refusal == nil { alive += 1 } else { #expect(refusal?.endedSession?.reason == "replaced") }
            }
            #expect(alive == 1)
            #expect(try await scene.life.readLive(of: account.number, newest: 100).count == 1)
        }
    }
}

extension SessionScene {
    fileprivate func end(_ session: TestSession, of account: Account, _ kind: String) async throws {
        switch kind {
        case "logout":
            try await life.end(.one(session.token.id), with: SessionTermination(.signedOut, at: now))
        case "revoke":
            // Like a command in another process: it writes by itself and increments the generation.
            let draft = deployment.auditDraft(for: .sessionRevoke, on: .session(session.token.id, of: app))
            _ = try deployment.store.end(
                .one(session.token.id), with: SessionTermination(.revoked, at: now), recording: draft)
            deployment.generation.advance()
        default:
            let draft = deployment.auditDraft(for: .accountLock, on: .account(account.name, of: app))
            _ = try deployment.store.change(
                account.number, if: .anything, applying: .lock, at: now, recording: draft)
            deployment.generation.advance()
        }
    }
}
