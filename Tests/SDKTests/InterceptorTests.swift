import Testing

@testable import Countersign

/// The chain between the app and its server.
@Suite(.timeLimit(.minutes(15))) struct InterceptorTests {
    struct Marking: APIInterceptor {
        let mark: String

        func intercept(_ request: APIRequest, next: InterceptorChain) async throws -> APIAnswer {
            var request = request
            request.fields.append(HeaderField("X-Mark", value: mark))
            return try await next(request)
        }
    }

    struct Answering: APIInterceptor {
        func intercept(_ request: APIRequest, next: InterceptorChain) async throws -> APIAnswer {
            APIAnswer(status: 299, body: Array("cached".utf8))
        }
    }

    /// Repeats the request while the backend is busy.
    struct Insisting: APIInterceptor {
        let changing: @Sendable (inout APIRequest) -> Void

        func intercept(_ request: APIRequest, next: InterceptorChain) async throws -> APIAnswer {
            let first = try await next(request)
            guard first.response.status == 503 else { return first }
            var request = request
            changing(&request)
            return try await next(request)
        }
    }

    struct Throwing: APIInterceptor {
        struct Own: Error {}

        func intercept(_ request: APIRequest, next: InterceptorChain) async throws -> APIAnswer {
            throw Own()
        }
    }

    @Test func theFirstIsTheOutermost() async throws {
        let world = try await World { $0.interceptors = [Marking(mark: "a"), Marking(mark: "b")] }
        let client = try await world.signedIn()
        _ = try await client.data(for: APIRequest("/orders"))
        let sent = try #require(await world.backend.copies(of: "/orders").first)
        #expect(
            sent.fields.filter { $0.name == "X-Mark" }.map(\.value) == [Array("a".utf8), Array("b".utf8)])
        // The signature covers fields that an interceptor adds.
        let input = try #require(sent.fields.first { $0.name == "Signature-Input" })
        #expect(String(decoding: input.value, as: UTF8.self).contains("\"x-mark\""))
    }

    @Test func oneMayAnswerItself() async throws {
        let world = try await World { $0.interceptors = [Answering()] }
        let (data, response) = try await world.client().data(for: APIRequest("/orders"))
        #expect(String(decoding: data, as: UTF8.self) == "cached" && response.status == 299)
        #expect(!response.isGenuine)
        #expect(await world.backend.sent.isEmpty)
    }

    @Test func askingAgainIsTheSameWish() async throws {
        let world = try await World { $0.interceptors = [Insisting { _ in }] }
        let client = try await world.signedIn()
        await world.backend.plan(.answer(503), at: "/orders")
        let events = client.events
        let (_, response) = try await client.data(for: APIRequest(.post, "/orders", body: .bytes([1])))
        #expect(response.status == 200)
        #expect(await world.backend.reactions == 1)
        let copies = await world.backend.copies(of: "/orders")
        let keys = copies.map { copy in copy.fields.filter { $0.name == "Idempotency-Key" }.map(\.value) }
        #expect(copies.count == 2 && keys[0].count == 1 && keys[0] == keys[1])
        #expect(
            await first(of: events) {
                if case .sent(_, copy: 2, because: .other) = $0 { true } else { false }
            } != nil)
        // Signed anew: the server takes each signature once.
        #expect(
            copies[0].fields.first { $0.name == "Signature" }
                != copies[1].fields.first { $0.name == "Signature" })
    }

    @Test func anotherWishMayBeMadeOfIt() async throws {
        let world = try await World {
            $0.interceptors = [
                Insisting { request in
                    request.idempotencyKey = nil
                    request.body = .bytes([2])
                }
            ]
        }
        let client = try await world.signedIn()
        await world.backend.plan(.answer(503), at: "/orders")
        _ = try await client.data(for: APIRequest(.post, "/orders", body: .bytes([1])))
        let keys = await world.backend.copies(of: "/orders").map { copy in
            copy.fields.filter { $0.name == "Idempotency-Key" }.map(\.value)
        }
        #expect(keys.count == 2 && keys[0] != keys[1] && keys[1].count == 1)
    }

    @Test func whatOneThrowsReachesTheApp() async throws {
        let world = try await World { $0.interceptors = [Throwing()] }
        let client = try world.client()
        await #expect { try await client.data(for: APIRequest("/orders")) } throws: { error in
            guard case CountersignError.intercepted(let own) = error else { return false }
            return own is Throwing.Own
        }
    }
}
