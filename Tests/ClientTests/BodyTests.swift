import ClientFakes
import CountersignSchemes
import CountersignSeal
import CountersignWire
import Synchronization
import Testing

@testable import CountersignClient
import CountersignTransport

/// Bodies that are not in memory, in both directions.
@Suite struct BodyTests {
    private func signedIn() async throws -> FakeWorld {
        let world = try await FakeWorld()
        try await world.signUp()
        try await world.logIn()
        return world
    }

    /// A body that the transport consumes with the first byte of the request.
    private final class Stream: Sendable {
        let isTaken = Mutex(false)

        var use: BodyUse { .once(isUsedUp: { self.isTaken.withLock { $0 } }) }
    }

    private func upload(_ world: FakeWorld) -> Draft {
        let digest = SHA256.digest(Array("contents".utf8).span)
        var draft = world.draft("PUT")
        draft.streamed = Draft.StreamedBody(length: 8, digest: digest.indices.map { digest[$0] })
        return draft
    }

    private func orders(_ world: FakeWorld) async -> Int {
        await world.network.sent.count { $0.target == Array("/orders".utf8) }
    }

    @Test func aBodyIsSignedByItsDigest() async throws {
        let world = try await signedIn()
        #expect(try await world.calls.send(upload(world)).response.status == 200)
        let sent = try #require(await world.network.sent.last)
        var whole = world.draft("PUT")
        whole.body = Array("contents".utf8)
        _ = try await world.calls.send(whole)
        func value(_ draft: Draft, _ name: String) -> [UInt8]? {
            draft.fields.first { $0.name == name }?.value
        }
        #expect(
            value(sent, "Content-Digest")
                == value(try #require(await world.network.sent.last), "Content-Digest"))
        let input = String(decoding: try #require(value(sent, "Signature-Input")), as: UTF8.self)
        #expect(input.contains("\"content-digest\""))
        #expect(sent.request().framing == .length(8))
    }

    @Test func aBodyThatWasTakenIsNotSentTwice() async throws {
        let world = try await signedIn()
        let stream = Stream()
        // The client cannot know that its token has expired.
        await world.authority.expire()
        await world.network.plan(.before { stream.isTaken.withLock { $0 = true } }, at: "/orders")
        await #expect { try await world.calls.send(upload(world), body: stream.use) } throws: { error in
            guard case ClientOperationError.bodyUsedUp = error else { return false }
            return true
        }
        #expect(await world.network.done == 1)
        #expect(await orders(world) == 1)
        // All but the body is mended.
        #expect(await world.authority.refreshes == 1)
        #expect(try await world.calls.send(upload(world), body: Stream().use).response.status == 200)
        #expect(await orders(world) == 2)
    }

    @Test func aBodyThatNobodyTookIsSentAgain() async throws {
        let world = try await signedIn()
        await world.authority.expire()
        #expect(try await world.calls.send(upload(world), body: Stream().use).response.status == 200)
        #expect(await orders(world) == 2)
    }

    @Test func aBodyIsNotSpentOnATokenThatIsKnownToHaveRunOut() async throws {
        let world = try await signedIn()
        await world.pass(FakeSession.lifetime)
        let stream = Stream()
        await world.network.plan(.before { stream.isTaken.withLock { $0 = true } }, at: "/orders")
        #expect(try await world.calls.send(upload(world), body: stream.use).response.status == 200)
        #expect(await orders(world) == 1)
        #expect(await world.authority.refreshes == 1)
    }

    @Test func ofALostAnswerTheOutcomeIsUnknown() async throws {
        let world = try await signedIn()
        let stream = Stream()
        stream.isTaken.withLock { $0 = true }
        await world.network.plan(.lost, at: "/orders")
        await #expect { try await world.calls.send(upload(world), body: stream.use) } throws: { error in
            guard case ClientOperationError.transport(let problem) = error else { return false }
            return problem == TransportError(.connectionLost("the connection broke"), fate: .outcomeUnknown)
        }
        #expect(await orders(world) == 1)
        // A body that can be produced again is sent once more, with the same idempotency key.
        await world.network.plan(.lost, at: "/orders")
        #expect(try await world.calls.send(upload(world)).response.status == 200)
        #expect(await world.network.done == 2)
        #expect(await world.authority.done.values.allSatisfy { $0 == 1 })
    }

    @Test func anAnswerIsCheckedAsItComes() async throws {
        let world = try await signedIn()
        await world.network.plan(.streamed { $0 }, at: "/orders")
        let answered = try await world.calls.send(world.draft())
        #expect(answered.signer == nil)
        let check = try #require(answered.bodyCheck)
        #expect(try check.signer == world.state.login.map { KeyID(SessionToken(id: $0.id, epoch: 0)) })
        let body = answered.response.message.body
        for (bytes, holds) in [(body, true), (Array(body.dropLast()), false), (body + [0], false)] {
            var digest = BodyDigest(check.expectation)
            for byte in bytes { digest.update([byte].span) }
            var isRefused = false
            do { try digest.finish() } catch { isRefused = true }
            #expect(isRefused != holds)
        }
    }

    @Test func aForgedHeadIsNotPassedOn() async throws {
        let world = try await signedIn()
        await world.network.plan(
            .streamed { answer in
                var answer = answer
                answer.status = 201
                return answer
            }, at: "/orders")
        await #expect { try await world.calls.send(world.draft()) } throws: { error in
            guard case ClientOperationError.notGenuine = error else { return false }
            return true
        }
        // An incomplete refusal does not end the session.
        await world.network.plan(.streamed { $0 }, at: "/orders")
        await world.authority.end("revoked")
        let refused = try await world.calls.send(world.draft())
        #expect(await world.network.done == 2)
        #expect(refused.notice?.isGenuine == false && refused.bodyCheck == nil)
        #expect(try world.state.login != nil)
    }
}
