import ClientFakes
import CountersignWire
import Testing

@testable import Countersign

/// The states reported to an app, and the behaviour of its requests in each.
@Suite(.timeLimit(.minutes(15))) struct StateTests {
    @Test func aSessionThatEndedIsTold() async throws {
        let world = try await World()
        let client = try await world.signedIn()
        let states = client.states
        await world.authority.end("replaced")
        await #expect { try await client.data(for: APIRequest("/orders")) } throws: { error in
            guard case CountersignError.signedOut(let end) = error else { return false }
            return end.how == .replaced(by: nil) && end.at != nil
        }
        var shown: [CountersignState] = []
        for await state in states {
            shown.append(state)
            if case .signedOut = state { break }
        }
        // The one that held comes first, unless it was overtaken.
        guard case .signedOut(.ended(let end)) = try #require(shown.last) else {
            Issue.record("\(shown)")
            return
        }
        #expect(end.how == .replaced(by: nil))
        await #expect { try await client.data(for: APIRequest("/orders")) } throws: { error in
            if case CountersignError.notSignedIn = error { true } else { false }
        }
    }

    @Test func aRouteThatNeedsASessionFindsNobodySignedIn() async throws {
        let world = try await World()
        let client = try world.client()
        await world.backend.plan(.refuse("session-required"), at: "/orders")
        var request = APIRequest("/orders")
        request.caller = .app
        await #expect { try await client.data(for: request) } throws: { error in
            guard case CountersignError.signedOut(let end) = error else { return false }
            return end.how == .never
        }
    }

    @Test func anUpdateThatIsRequiredPausesTraffic() async throws {
        let world = try await World()
        let client = try await world.signedIn()
        let link = "https://example.com/next"
        await world.backend.plan(.refuse("update-required", [("update_url", .string(link))]), at: "/orders")
        await #expect { try await client.data(for: APIRequest("/orders")) } throws: { error in
            guard case CountersignError.updateRequired(let url) = error else { return false }
            return url == link
        }
        #expect(client.state == .updateRequired(url: link))
        let sent = await world.backend.sent.count
        for caller: APIRequest.Caller in [.account, .app] {
            var request = APIRequest("/orders")
            request.caller = caller
            await #expect { try await client.data(for: request) } throws: { error in
                if case CountersignError.updateRequired = error { true } else { false }
            }
        }
        #expect(await world.backend.sent.count == sent)
        client.continueDespiteUpdate()
        guard case .active = client.state else {
            Issue.record("\(client.state)")
            return
        }
        #expect(try await client.data(for: APIRequest("/orders")).1.status == 200)
    }

    @Test func aRequestMayWaitForTheSameAccount() async throws {
        let world = try await World { $0.whenPaused = .wait }
        let client = try await world.signedIn()
        await world.authority.end("revoked")
        _ = try? await client.data(for: APIRequest("/orders"))
        let sent = await world.backend.copies(of: "/orders").count
        let waiting = await client.waitingRequest("/orders")
        #expect(await world.backend.copies(of: "/orders").count == sent)
        try await client.logIn("alice", "correct horse")
        #expect(try await waiting.value == 200)
    }

    @Test func aRequestIsNobodyElses() async throws {
        let world = try await World { $0.whenPaused = .wait }
        let client = try await world.signedIn()
        try await client.signUp("bob", "correct horse")
        await world.authority.end("revoked")
        _ = try? await client.data(for: APIRequest("/orders"))
        let events = client.events
        let waiting = Task { try await client.data(for: APIRequest("/orders")) }
        _ = await first(of: events) { if case .began = $0 { true } else { false } }
        try await client.logIn("bob", "correct horse")
        await #expect { try await waiting.value } throws: { error in
            if case CountersignError.accountChanged = error { true } else { false }
        }
    }

    @Test func whoSignedOutHimselfIsNotWaitedFor() async throws {
        let world = try await World { $0.whenPaused = .wait }
        let client = try await world.signedIn()
        try await client.logOut()
        await #expect { try await client.data(for: APIRequest("/orders")) } throws: { error in
            if case CountersignError.notSignedIn = error { true } else { false }
        }
    }

    @Test func oneThatWaitsCanBeCancelled() async throws {
        let world = try await World { $0.whenPaused = .wait }
        let client = try await world.signedIn()
        await world.authority.end("revoked")
        _ = try? await client.data(for: APIRequest("/orders"))
        let events = client.events
        let waiting = Task { try await client.data(for: APIRequest("/orders")) }
        _ = await first(of: events) { if case .began = $0 { true } else { false } }
        waiting.cancel()
        await #expect { try await waiting.value } throws: { error in
            if case CountersignError.cancelled = error { true } else { false }
        }
    }

    @Test func pollingEndsWithAnUpdate() async throws {
        let world = try await World()
        let client = try await world.signedIn()
        await world.backend.plan(.answer(200, [], [1]), at: "/news")
        // A round without a response is skipped.
        await world.backend.plan(.fail(TransportError(.offline, fate: .notSent)), at: "/news")
        await world.backend.plan(.answer(200, [], [2]), at: "/news")
        await world.backend.plan(.refuse("update-required"), at: "/news")
        var heard: [UInt8] = []
        do throws(CountersignError) {
            for try await (data, _) in client.poll(APIRequest("/news"), every: .milliseconds(1)) {
                heard += data
            }
            Issue.record("it ended without a word")
        } catch {
            guard case .updateRequired = error else { throw error }
        }
        #expect(heard == [1, 2])
        #expect(await world.backend.reactions == 4)
        #expect(client.state == .updateRequired(url: nil))
    }

    @Test(arguments: [CountersignOptions.Pause.fail, .wait]) func pollingEndsWithWhatAnotherRequestBrought(
        _ pause: CountersignOptions.Pause
    ) async throws {
        for news in ["update-required", "session-ended"] {
            let world = try await World { $0.whenPaused = pause }
            let client = try await world.signedIn()
            var rounds = client.poll(APIRequest("/news"), every: .milliseconds(1)).makeAsyncIterator()
            #expect(try await rounds.next() != nil)
            if news == "update-required" {
                await world.backend.plan(.refuse("update-required"), at: "/orders")
            } else {
                await world.authority.end("revoked")
            }
            await #expect(throws: CountersignError.self) { try await client.data(for: APIRequest("/orders")) }
            do throws(CountersignError) {
                _ = try await rounds.next()
                Issue.record("it goes on after \(news)")
            } catch {
                switch (error, news) {
                case (.updateRequired, "update-required"): break
                case (.signedOut(let end), "session-ended"): #expect(end.how == .revoked)
                default: throw error
                }
            }
            #expect(await world.backend.copies(of: "/news").count == 1)
        }
    }

    @Test func aHintOfAnUpdateIsPassedOnOnce() async throws {
        let world = try await World()
        let client = try await world.signedIn()
        let hint = HeaderField(
            "Countersign-Update", value: #"stage=warn, at=1769817600, link="https://example.com/next""#)
        for _ in 0..<2 { await world.backend.plan(.answer(200, [hint]), at: "/orders") }
        await world.backend.plan(
            .answer(200, [HeaderField("Countersign-Update", value: "\"broken")]), at: "/orders")
        let events = client.events
        for _ in 0..<3 { _ = try await client.data(for: APIRequest("/orders")) }
        try await client.logOut()
        var hints: [CountersignEvent] = []
        for await event in events {
            if case .updateAvailable = event { hints.append(event) }
            if event == .state(.signedOut) { break }
        }
        #expect(
            hints == [
                .updateAvailable(url: CountersignEvent.Link("https://example.com/next"), at: 1_769_817_600)
            ])
        #expect(await world.backend.reactions == 3)
    }

    @Test func streamsEndWithTheirClient() async throws {
        let world = try await World()
        var client: CountersignClient? = try world.client()
        let (states, events) = (try #require(client).states, try #require(client).events)
        client = nil
        #expect(await states.reduce(0) { count, _ in count + 1 } == 1)
        #expect(await events.reduce(0) { count, _ in count + 1 } == 0)
    }

    @Test func oneThatWaitsForAnUpdateGoesOnWhenToldSo() async throws {
        let world = try await World { $0.whenPaused = .wait }
        let client = try await world.signedIn()
        await world.backend.plan(.refuse("update-required"), at: "/orders")
        _ = try? await client.data(for: APIRequest("/orders"))
        #expect(client.state == .updateRequired(url: nil))
        let sent = await world.backend.sent.count
        let waiting = await client.waitingRequest("/orders")
        #expect(await world.backend.sent.count == sent)
        client.continueDespiteUpdate()
        #expect(try await waiting.value == 200)
    }
}
