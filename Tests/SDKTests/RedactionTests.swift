import ClientFakes
import CountersignTrust
import CountersignWire
import Testing

@testable import Countersign

/// Secrets in every place where an app, a server or a user can put one appear in no event.
@Suite(.timeLimit(.minutes(15))) struct RedactionTests {
    private static let mark = "S3CR3T"

    /// Events contain the address without parts that may be secret.
    private static let link = "https://example.com/next?token=\(mark)#\(mark)"

    private struct Again: APIInterceptor {
        func intercept(_ request: APIRequest, next: InterceptorChain) async throws -> APIAnswer {
            let answer = try await next(request)
            return answer.response.isSuccess ? answer : try await next(request)
        }
    }

    @Test func noEventHoldsASecret() async throws {
        let mark = RedactionTests.mark
        // An interceptor that repeats the request, so that events contain the reason.
        let world = try await World { $0.interceptors = [Again()] }
        let client = try world.client()
        let events = client.events
        try await client.signUp("name-\(mark)", "password-\(mark)")
        _ = try? await client.logIn("name-\(mark)", "wrong-\(mark)")
        try await client.logIn("name-\(mark)", "password-\(mark)")
        let fields = [
            HeaderField("X-Token", value: mark), HeaderField("Cookie", value: mark),
            HeaderField("X-\(mark)", value: "1"),
        ]
        let verdict = try RedactionTests.verdict()
        client.core.events.tell(.judged(verdict))
        let answers: [FakeBackend.Reaction] = [
            .answer(
                200, [HeaderField("Set-Cookie", value: mark), HeaderField(mark, value: mark)],
                Array(mark.utf8)),
            .answer(404, [HeaderField("Countersign-Update", value: "stage=\(mark)")], Array(mark.utf8)),
            .answer(
                200,
                [HeaderField("Countersign-Update", value: #"stage=warn, link="\#(RedactionTests.link)""#)]),
            .answer(401, [], Array(#"{"code":"\#(mark)"}"#.utf8)),
            .refuse(
                "forbidden",
                [("title", .string(mark)), ("detail", .string(mark)), ("instance", .string(mark))]),
            .refuse(mark, []),
            .fail(TransportError(.connectionLost(mark), fate: .outcomeUnknown)),
            .fail(TransportError(.tls(mark), fate: .notSent)),
        ]
        for answer in answers {
            await world.backend.plan(answer, at: "/orders")
            var request = APIRequest(
                .post, "/orders?token=\(mark)&\(mark)", fields: fields, body: .bytes(Array(mark.utf8)))
            request.idempotencyKey = mark
            _ = try? await client.data(for: request)
        }
        _ = try? await client.data(for: APIRequest("https://elsewhere.example.com/\(mark)-not/../x?\(mark)"))
        await world.pass(FakeSession.lifetime)
        _ = try await client.data(for: APIRequest("/orders"))
        try await client.logOut()
        #expect(await world.backend.reactions == answers.count)

        var (seen, again, links, names) = (0, 0, 0, 0)
        for await event in events {
            seen += 1
            if case .sent(_, copy: 2, because: _) = event { again += 1 }
            if event == .updateAvailable(url: CountersignEvent.Link(RedactionTests.link), at: nil) {
                links += 1
            }
            var dumped = ""
            dump(event, to: &dumped)
            if event == .judged(verdict) {
                // The only place in which an event contains a name that a server chose.
                names += dumped.contains(mark) ? 1 : 0
                continue
            }
            #expect(!"\(event) \(dumped)".contains(mark) || RedactionTests.isOfThePath(event), "\(event)")
            if event == .state(.signedOut), seen > 20 { break }
        }
        #expect(seen > 30 && again > 2 && links == 1 && names == 1)
    }

    private static func verdict() throws -> Trust.Verdict {
        let host = try Trust.Host("api.example.com")
        return Trust.Verdict(
            host, decision: .refused, reasons: [.wrongHost(certificateIsFor: ["\(mark).example.com"])],
            served: [], expected: [])
    }

    /// Events contain the path; secrets that an app writes there are the app's responsibility.
    private static func isOfThePath(_ event: CountersignEvent) -> Bool {
        switch event {
        case .began(let call), .failed(let call, _, after: _): call.path.hasPrefix("https://elsewhere")
        default: false
        }
    }

    @Test func noReleaseKeyIsPrinted() throws {
        let secret = "AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8"
        let key = try ReleaseKey(id: "r_1", secret: secret)
        var dumped = ""
        dump(key, to: &dumped)
        #expect("\(key)" == "release key r_1")
        #expect(!dumped.contains("0, 1, 2") && !dumped.contains(secret) && dumped.contains("r_1"))
        #expect(throws: CountersignError.self) { try ReleaseKey(id: "r 1", secret: secret) }
        #expect(throws: CountersignError.self) { try ReleaseKey(id: "r_1", secret: "AAEC") }
        #expect(throws: CountersignError.self) {
            try ReleaseKey(id: "r_1", secret: secret, authorityKey: "AAEC")
        }
    }
}
