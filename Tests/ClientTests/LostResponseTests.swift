import CountersignTransport
import CountersignWire
import Testing

@testable import CountersignClient

/// A request is sent again only where the server recognizes a second copy, or where a second copy changes
/// nothing.
@Suite struct LostResponseTests {
    private func copies(_ world: FakeWorld) async -> Int {
        await world.network.sent.count { $0.target == Array("/orders".utf8) }
    }

    private func expectUnknownOutcome(_ body: () async throws -> Void) async {
        await #expect {
            try await body()
        } throws: { error in
            guard case ClientOperationError.transport(let problem) = error else { return false }
            return problem.fate == .outcomeUnknown
        }
    }

    @Test(arguments: ["GET", "POST"]) func aCallerThatStopsAtALostResponseSendsOneCopy(
        _ method: String
    ) async throws {
        let world = try await FakeWorld()
        try await world.signUp()
        try await world.logIn()
        await world.network.plan(.lost, at: "/orders")
        await expectUnknownOutcome { _ = try await world.calls.send(world.draft(method), ifLost: .stop) }
        #expect(await world.network.done == 1)
        #expect(await copies(world) == 1)
        // Without that argument the second copy finds the response.
        await world.network.plan(.lost, at: "/orders")
        #expect(try await world.calls.send(world.draft(method)).response.status == 200)
        #expect(await copies(world) == 3)
    }

    @Test func aReleaseSignedChangeIsNotSentAgainWhereItsResponseIsLost() async throws {
        let world = try await FakeWorld()
        let calls = ReleaseCalls(world.installation, environment: world.environment)
        await world.network.plan(.lost, at: "/orders")
        await expectUnknownOutcome { _ = try await calls.send(world.draft("POST")) }
        #expect(await world.network.done == 1)
        #expect(await copies(world) == 1)
    }

    /// The refusal speaks for one copy; an intermediary may have had another copy processed. So the clock is
    /// corrected, and a change without an idempotency key is not sent again.
    @Test(
        arguments: [("POST", nil, 1), ("POST", "key", 2), ("DELETE", nil, 1), ("GET", nil, 2)]
            as [(String, String?, Int)])
    func aReleaseSignedChangeIsNotSentAgainAfterAClockCorrection(
        _ row: (method: String, key: String?, copies: Int)
    ) async throws {
        let world = try await FakeWorld()
        world.time.set(by: -86_400)
        var draft = world.draft(row.method)
        if let key = row.key { draft.setField("Idempotency-Key", to: key) }
        _ = try await ReleaseCalls(world.installation, environment: world.environment).send(draft)
        #expect(await copies(world) == row.copies)
    }
}
