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
        let many = try (1...20).map { number in
            try suspend(
                "GET /many HTTP/1.1\r\nHost: h\r\n\r\n", from: "127.0.0.5", on: engine, by: handler,
                as: number)
        }
        let one = try suspend(
            "GET /one HTTP/1.1\r\nHost: h\r\n\r\n", from: "127.0.0.6", on: engine, by: handler, as: 21)
        defer { for client in many + [one] { client.close() } }

        #expect(one.receive(until: "/one\n").hasPrefix("HTTP/1.1 403 Forbidden\r\n"))
        for client in many {
            #expect(client.receive(until: "/many\n").hasPrefix("HTTP/1.1 403 Forbidden\r\n"))
        }
        // Each takes more of a turn than an address has at once. The one was the last to be told to go on.
        let order = handler.order
        #expect(order.count == 21)
        #expect(try #require(order.firstIndex(of: "/one")) <= 4, "\(order)")
    }

    /// Connects and sends the request until it is the suspended one of this number: on a busy machine the
    /// connection's task may handle it.
    private func suspend(
        _ request: String, from address: String, on engine: Engine, by handler: SuspendingHandler,
        as number: Int
    ) throws -> RawClient {
        for _ in 1...1_000 {
            let client = try RawClient(port: engine.port, from: address)
            client.send(request)
            handler.arrived.wait()
            if handler.suspended == number { return client }
            client.close()
        }
        throw NeverSuspended()
    }

    private struct NeverSuspended: Error {}
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
    /// Set for each request.
    let arrived = DispatchlessSignal()

    init(count: Int) { self.count = count }

    var suspended: Int { state.with { $0.waiting.count } }
    var order: [String] { state.with { $0.order } }

    func handleAtOnce(_ exchange: any Exchange) -> ImmediateOutcome {
        let item = Item(exchange, handler: self)
        let all = state.with { state in
            state.waiting.append(item)
            return state.waiting.count == count ? state.waiting : []
        }
        arrived.set()
        for item in all { item.exchange.goOn(with: item) }
        return .suspended
    }

    func handle(_ exchange: any Exchange) async {
        arrived.set()
        await exchange.respond(ServerResponse(status: 403, type: "text/plain", body: []))
    }

    func refuse(_ refusal: Refusal, on exchange: any Exchange) async {
        await exchange.respond(ServerResponse(status: refusal.code.status, type: "text/plain", body: []))
    }
}
