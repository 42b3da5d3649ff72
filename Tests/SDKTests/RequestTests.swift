import ClientFakes
import CountersignTransport
import CountersignTrust
import CountersignWire
import Testing
import Waiting

@testable import Countersign

/// Signing, sending and verification of responses.
@Suite(.timeLimit(.minutes(15))) struct RequestTests {
    struct Order: Codable, Equatable, Sendable {
        var orderNumber: Int
    }

    @Test func eachCallIsAWishOfItsOwn() async throws {
        let world = try await World()
        let client = try await world.signedIn()
        let request = APIRequest(.post, "/orders", body: .bytes([1]))
        _ = try await client.data(for: request)
        _ = try await client.data(for: request)
        _ = try await client.data(for: APIRequest("/orders"))
        let keys = await world.backend.copies(of: "/orders").map { copy in
            copy.fields.filter { $0.name == "Idempotency-Key" }.map(\.value)
        }
        #expect(keys.map(\.count) == [1, 1, 0] && keys[0] != keys[1])
    }

    @Test func aWishMayOutliveItsCall() async throws {
        let world = try await World()
        let client = try await world.signedIn()
        var request = APIRequest(.post, "/orders", body: .bytes([1]))
        request.idempotencyKey = "order-7"
        _ = try await client.data(for: request)
        let sent = try #require(await world.backend.copies(of: "/orders").first)
        #expect(
            sent.fields.filter { $0.name == "Idempotency-Key" } == [
                HeaderField("Idempotency-Key", value: "order-7")
            ])
    }

    @Test func aLostAnswerIsAskedForAgain() async throws {
        let world = try await World()
        let client = try await world.signedIn()
        let lost = TransportError(.connectionLost("test"), fate: .outcomeUnknown)
        await world.backend.plan(.fail(lost), at: "/orders")
        let events = client.events
        _ = try await client.data(for: APIRequest(.post, "/orders", body: .bytes([1])))
        #expect(await world.backend.reactions == 1)
        #expect(await world.backend.copies(of: "/orders").count == 2)
        let again = await first(of: events) {
            if case .sent(_, copy: 2, because: .lostAnswer) = $0 { true } else { false }
        }
        #expect(again != nil)
        await world.backend.plan(.fail(lost), at: "/orders")
        await world.backend.plan(.fail(lost), at: "/orders")
        await #expect { try await client.data(for: APIRequest("/orders")) } throws: { error in
            (error as? CountersignError)?.isOutcomeUnknown == true
        }
    }

    @Test func whatABackendSaysIsAnAnswer() async throws {
        let world = try await World()
        let client = try await world.signedIn()
        await world.backend.plan(
            .answer(404, [HeaderField("X-Why", value: "gone")], Array("no such order".utf8)), at: "/orders")
        let (data, response) = try await client.data(for: APIRequest("/orders"))
        #expect(response.status == 404 && !response.isGenuine && !response.isSuccess)
        #expect(response.value(of: "x-why") == "gone")
        #expect(String(decoding: data, as: UTF8.self) == "no such order")
    }

    @Test func whatTheAuthorityRefusesIsThrown() async throws {
        let world = try await World()
        let client = try await world.signedIn()
        await world.backend.plan(.refuse("forbidden", [("title", "No"), ("instance", "e-1")]), at: "/orders")
        await #expect { try await client.data(for: APIRequest("/orders")) } throws: { error in
            guard case CountersignError.refused(let refusal) = error else { return false }
            return refusal.isGenuine && refusal.code == "forbidden" && refusal.event == "e-1"
                && refusal.status == 403
        }
        // The same words from anybody are an answer, and nothing follows from them.
        let words = Array(#"{"code":"update-required","update_url":"https://evil.example.com"}"#.utf8)
        await world.backend.plan(.answer(426, [], words), at: "/orders")
        #expect(try await client.data(for: APIRequest("/orders")).1.status == 426)
        #expect(try await client.data(for: APIRequest("/orders")).1.status == 200)
    }

    @Test func offlineAndTooSlowAreToldApart() async throws {
        let world = try await World()
        let client = try await world.signedIn()
        await world.backend.plan(.fail(TransportError(.offline, fate: .notSent)), at: "/orders")
        await world.backend.plan(.fail(TransportError(.timedOut(.connecting), fate: .notSent)), at: "/orders")
        await #expect { try await client.data(for: APIRequest("/orders")) } throws: { error in
            guard let error = error as? CountersignError else { return false }
            return error.isOffline && !error.isTimeout && !error.isOutcomeUnknown
        }
        await #expect { try await client.data(for: APIRequest("/orders")) } throws: { error in
            guard let error = error as? CountersignError else { return false }
            return error.isTimeout && !error.isOffline
        }
        #expect(await world.backend.reactions == 2)
    }

    @Test func aServerIsUnreachableOnlyWhereNothingWasSentAndAnotherAttemptMaySucceed() throws {
        let verdict = Trust.Verdict(
            try Trust.Host("api.example.com"), decision: .refused, reasons: [.pinNotMet], served: [],
            expected: [])
        let rows: [(TransportError, Bool)] = [
            (TransportError(.offline, fate: .notSent), true),
            (TransportError(.hostNotFound, fate: .notSent), true),
            (TransportError(.connectionRefused, fate: .notSent), true),
            (TransportError(.timedOut(.connecting), fate: .notSent), true),
            (TransportError(.connectionLost("reset"), fate: .notSent), true),
            (TransportError(.timedOut(.idle), fate: .outcomeUnknown), false),
            (TransportError(.connectionLost("reset"), fate: .brokenOff), false),
            (TransportError(.untrusted(verdict), fate: .notSent), false),
            (TransportError(.body("the stream threw"), fate: .notSent), false),
        ]
        for (error, expected) in rows {
            #expect(CountersignError.transport(error).isUnreachable == expected, "\(error)")
        }
        #expect(!CountersignError.notSignedIn.isUnreachable)
    }

    @Test func valuesGoOutAndComeIn() async throws {
        let world = try await World { $0.json = .snakeCase }
        let client = try await world.signedIn()
        let body = Array(#"{"order_number":7}"#.utf8)
        await world.backend.plan(.answer(201, [], body), at: "/orders")
        let request = try APIRequest.json(.post, "/orders", Order(orderNumber: 7), coding: .snakeCase)
        let order = try await client.value(for: request, as: Order.self)
        #expect(order == Order(orderNumber: 7))
        let sent = try #require(await world.backend.copies(of: "/orders").first)
        guard case .bytes(let bytes) = sent.body else {
            Issue.record("no body")
            return
        }
        #expect(bytes == body)
        await world.backend.plan(.answer(500, [], [1, 2]), at: "/orders")
        await #expect { try await client.value(for: request, as: Order.self) } throws: { error in
            guard case CountersignError.status(let response, let body) = error else { return false }
            return response.status == 500 && body == [1, 2]
        }
        await world.backend.plan(.answer(200, [], Array("{}".utf8)), at: "/orders")
        await #expect { try await client.value(for: request, as: Order.self) } throws: { error in
            if case CountersignError.decoding = error { true } else { false }
        }
    }

    @Test func anAnswerHasItsBounds() async throws {
        let world = try await World { $0.largestAnswer = 1_000 }
        let client = try await world.signedIn()
        await world.backend.plan(.answer(200, [], [UInt8](repeating: 1, count: 1_000)), at: "/orders")
        #expect(try await client.data(for: APIRequest("/orders")).0.count == 1_000)
        await world.backend.plan(.answer(200, [], [UInt8](repeating: 1, count: 1_001)), at: "/orders")
        await #expect { try await client.data(for: APIRequest("/orders")) } throws: { error in
            guard case CountersignError.answerTooLarge(let limit) = error else { return false }
            return limit == 1_000
        }
    }

    @Test func aSignedRequestIsAValue() async throws {
        let world = try await World()
        let client = try await world.signedIn()
        let signed = try await client.signed(APIRequest(.post, "/orders?id=7", body: .bytes([1, 2])))
        #expect(signed.url == "https://api.example.com/orders?id=7")
        #expect(
            signed.fields.contains { $0.name == "Signature" }
                && signed.fields.contains { $0.name == "Content-Digest" })
        // Sent by hand, the authority takes it once.
        var request = OutgoingRequest(
            "POST", origin: Origin(.tls, host: try Trust.Host("api.example.com")), target: "/orders?id=7",
            fields: signed.fields,
            body: .bytes([1, 2]))
        let first = try await world.backend.carry(request)
        let second = try await world.backend.carry(request)
        #expect(first.status == 200 && second.status == 401)
        request.target = Array("/orders?id=8".utf8)
        #expect(try await world.backend.carry(request).status == 401)
    }

    @Test func aSignedRequestUnderATokenThatRanOutRenewsItFirst() async throws {
        let world = try await World()
        let client = try await world.signedIn()
        await world.pass(FakeSession.lifetime)
        let signed = try await client.signed(APIRequest("/orders"))
        #expect(await world.authority.refreshes == 1)
        let request = OutgoingRequest(
            "GET", origin: Origin(.tls, host: try Trust.Host("api.example.com")), target: "/orders",
            fields: signed.fields)
        #expect(try await world.backend.carry(request).status == 200)
    }

    @Test func aTokenThatRanOutIsRenewedUnseen() async throws {
        let world = try await World()
        let client = try await world.signedIn()
        await world.pass(FakeSession.lifetime)
        let events = client.events
        #expect(try await client.data(for: APIRequest(.post, "/orders", body: .bytes([1]))).1.status == 200)
        #expect(await world.authority.refreshes == 1)
        #expect(await first(of: events) { $0 == .refreshing } != nil)
        #expect(await first(of: events) { $0 == .refreshed(.renewed) } != nil)
    }

    @Test func aCancelledCallSaysSo() async throws {
        let world = try await World()
        let client = try await world.signedIn()
        await world.backend.plan(.silence, at: "/orders")
        let task = Task { try await client.data(for: APIRequest("/orders")) }
        let events = client.events
        await until("the request") { await world.backend.reactions > 0 }
        task.cancel()
        await #expect { try await task.value } throws: { error in
            if case CountersignError.cancelled = error { true } else { false }
        }
        let failed = await first(of: events) {
            if case .failed(_, .cancelled, after: _) = $0 { true } else { false }
        }
        #expect(failed != nil)
    }

    @Test func aSignedBodyThatStreamsIsSeenToBeTheOne() async throws {
        let world = try await World()
        let client = try await world.signedIn()
        let body = [UInt8](repeating: 7, count: 3_000_000)
        await world.backend.plan(.sign(body, arriving: body), at: "/film")
        let answer = try await client.download(for: APIRequest("/film"))
        #expect(answer.response.signer == .session)
        #expect(try await answer.body.collect(upTo: 3_000_000) == body)

        await world.backend.plan(.sign(body, arriving: body.dropLast() + [8]), at: "/film")
        let altered = try await client.download(for: APIRequest("/film"))
        var read = 0
        do throws(CountersignError) {
            for try await piece in altered.body { read += piece.count }
            Issue.record("it was taken for the signed one")
        } catch {
            guard case .notGenuine = error else { throw error }
        }
        // The client withholds the end: an app never has a complete altered body.
        #expect(read > 0 && read < 3_000_000)
        #expect(await world.backend.reactions == 2)
    }

    @Test func aShortOneIsJudgedBeforeAnybodyReadsIt() async throws {
        let world = try await World()
        let client = try await world.signedIn()
        await world.backend.plan(.sign([1, 2], arriving: [1, 3]), at: "/film")
        await #expect { try await client.download(for: APIRequest("/film")) } throws: { error in
            if case CountersignError.notGenuine = error { true } else { false }
        }
        #expect(await world.backend.reactions == 1)
    }

    @Test func manyAtOnceUnderATokenThatRanOutRenewItOnce() async throws {
        let world = try await World()
        let client = try await world.signedIn()
        await world.pass(FakeSession.lifetime)
        let statuses = try await withThrowingTaskGroup(of: Int.self) { group in
            for number in 0..<100 {
                group.addTask {
                    let request =
                        number.isMultiple(of: 2)
                        ? APIRequest(.post, "/orders", body: .bytes([1])) : APIRequest("/orders")
                    return try await client.data(for: request).1.status
                }
            }
            return try await group.reduce(into: []) { $0.append($1) }
        }
        #expect(statuses == [Int](repeating: 200, count: 100))
        #expect(await world.authority.refreshes == 1)
        // Each request kept its idempotency key in all of its copies.
        let done = await world.authority.done.filter { !$0.key.isEmpty }
        #expect(done.count == 50 && done.values.allSatisfy { $0 == 1 })
    }

    @Test func aClockThatIsWrongIsCorrectedAndTold() async throws {
        let world = try await World()
        let client = try await world.signedIn()
        await world.authority.advance(by: 3_600)
        let events = client.events
        #expect(try await client.data(for: APIRequest("/orders")).1.status == 200)
        let stale = await first(of: events) {
            if case .sent(_, copy: 2, because: .refused(code: "stale")) = $0 { true } else { false }
        }
        #expect(stale != nil)
        #expect(await first(of: events) { $0 == .clockCorrected(offset: 3_600) } != nil)
    }
}
