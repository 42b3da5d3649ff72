// Proves that requests that go on after they have waited for something else than a socket take turns by address.

import CountersignMemory
import CountersignWire
import Glibc
import Testing

@testable import CountersignHTTP

@Suite struct SuspendedRequestTests {
    @Test("an address with many requests that go on at once does not hold up another's")
    func goOnAddressByAddress() throws {
        let handler = SuspendingHandler(count: 21)
        let engine = try Engine(handler: handler)
        defer { engine.stop() }
        let many = try (0..<20).map { _ in try RawClient(port: engine.port, from: "127.0.0.5") }
        let one = try RawClient(port: engine.port, from: "127.0.0.6")
        defer { for client in many + [one] { client.close() } }
        for client in many { client.send("GET /many HTTP/1.1\r\nHost: h\r\n\r\n") }
        while handler.suspended < many.count { usleep(1_000) }
        one.send("GET /one HTTP/1.1\r\nHost: h\r\n\r\n")

        #expect(one.receive(until: "/one\n").hasPrefix("HTTP/1.1 403 Forbidden\r\n"))
        for client in many {
            #expect(client.receive(until: "/many\n").hasPrefix("HTTP/1.1 403 Forbidden\r\n"))
        }
        // Each takes more of a turn than an address has at once. The one was the last to be told to go on.
        let order = handler.order
        #expect(order.count == 21)
        #expect(try #require(order.firstIndex(of: "/one")) <= 4, "\(order)")
    }
}

/// Suspends requests until there are `count`, and has them all go on within one turn of the loop, in the order
/// in which they arrived. Each then takes 3 ms.
private final class SuspendingHandler: Handler {
    private struct State {
        var waiting: [Item] = []
        var order: [String] = []
    }

    private final class Item: SuspendedRequest, @unchecked Sendable {
        let exchange: any Exchange
        private unowned let handler: SuspendingHandler

        init(_ exchange: any Exchange, handler: SuspendingHandler) {
            (self.exchange, self.handler) = (exchange, handler)
        }

        func goOn() -> ImmediateOutcome {
            let end = EventLoop.nanoseconds() + 3_000_000
            while EventLoop.nanoseconds() < end {}
            let target = exchange.request.text(exchange.request.target)
            handler.state.with { $0.order.append(target) }
            let response = ResponseBytes()
            response.begin(status: 403)
            response.body.append("\(target)\n")
            return exchange.respondAtOnce(response) ? .answered : .declined
        }
    }

    private let count: Int
    private let state = Locked(State())

    init(count: Int) { self.count = count }

    var suspended: Int { state.with { $0.waiting.count } }
    var order: [String] { state.with { $0.order } }

    func handleAtOnce(_ exchange: any Exchange) -> ImmediateOutcome {
        let item = Item(exchange, handler: self)
        let all = state.with { state in
            state.waiting.append(item)
            return state.waiting.count == count ? state.waiting : []
        }
        for item in all { item.exchange.goOn(with: item) }
        return .suspended
    }

    func handle(_ exchange: any Exchange) async {
        Issue.record("a suspended request was handled from the beginning")
    }

    func refuse(_ refusal: Refusal, on exchange: any Exchange) async {
        await exchange.respond(ServerResponse(status: refusal.code.status, type: "text/plain", body: []))
    }
}
