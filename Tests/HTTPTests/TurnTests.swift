// Proves that what is sent late is sent once and in its turn of the loop, and that a connection which waits for
// its address's turn is served without a task.

import CountersignMemory
import CountersignWire
import Glibc
import Testing

@testable import CountersignHTTP

@Suite struct TurnTests {
    // MARK: Late sends

    @Test func aSenderIsCalledOnceAndInTheTurn() throws {
        let loop = try EventLoop()
        try loop.start(name: "test")
        let log = SendLog()
        // The first call comes before the first turn.
        loop.performAndWait {}
        loop.performAndWait {
            log.note("asks in \(loop.turn)")
            loop.sendLate(NotingSender(log, loop: loop, name: "first"))
            loop.sendLate(NotingSender(log, loop: loop, name: "second", next: "third"))
            log.note("goes on")
        }
        loop.performAndWait {}
        loop.stop()
        loop.join()
        let turn = try #require(log.lines.first?.split(separator: " ").last)
        #expect(
            log.lines == [
                "asks in \(turn)", "goes on", "first in \(turn)", "second in \(turn)", "third in \(turn)",
            ])
    }

    @Test func whatAJobSendsIsSentInItsTurn() async throws {
        let loop = try EventLoop()
        try loop.start(name: "test")
        let log = SendLog()
        await Task(executorPreference: loop) {
            log.note("asks in \(loop.turn)")
            loop.sendLate(NotingSender(log, loop: loop, name: "first"))
        }.value
        loop.performAndWait {}
        loop.stop()
        loop.join()
        let turn = try #require(log.lines.first?.split(separator: " ").last)
        #expect(log.lines == ["asks in \(turn)", "first in \(turn)"])
    }

    /// Refusals send nothing late. Those of strangers in the same turn do not hold up what is sent.
    @Test func whatIsSentDoesNotWaitForSlowRefusals() throws {
        let handler = SlowHandler()
        let engine = try Engine(handler: handler)
        defer { engine.stop() }
        let clients = try (1...8).map { try RawClient(port: engine.port, from: "127.0.0.\($0)") }
        defer { for client in clients { client.close() } }
        for client in clients { client.send("GET /warm HTTP/1.1\r\nHost: h\r\n\r\n") }
        for client in clients { _ = client.receive(until: "/warm\n") }
        let (isHeld, mayGoOn) = (DispatchlessSignal(), DispatchlessSignal())
        engine.loop.perform {
            isHeld.set()
            mayGoOn.wait()
        }
        isHeld.wait()
        for (index, client) in clients.enumerated() {
            client.send("GET /\(index == 0 ? "late" : "refused") HTTP/1.1\r\nHost: h\r\n\r\n")
        }
        mayGoOn.set()
        for client in clients { _ = client.receive(until: "\r\n\r\n/") }
        let lines = handler.log.lines.filter { $0 != "/warm" }
        #expect(lines.first == "/late" && lines.prefix(3).contains("sent"), "\(lines)")
        #expect(lines.count == 9)
    }

    // MARK: Turns

    /// So many clients whose requests are all there before the loop looks.
    private func withCrowd(
        of count: Int, _ body: (Engine, [RawClient], SlowHandler) throws -> Void
    ) throws {
        let handler = SlowHandler()
        let engine = try Engine(handler: handler)
        defer { engine.stop() }
        let clients = try (0..<count).map { _ in try RawClient(port: engine.port) }
        defer { for client in clients { client.close() } }
        for client in clients { client.send("GET /warm HTTP/1.1\r\nHost: h\r\n\r\n") }
        for client in clients { #expect(client.receive(until: "/warm\n").hasSuffix("/warm\n")) }
        let (isHeld, mayGoOn) = (DispatchlessSignal(), DispatchlessSignal())
        engine.loop.perform {
            isHeld.set()
            mayGoOn.wait()
        }
        isHeld.wait()
        for client in clients { client.send("GET /slow HTTP/1.1\r\nHost: h\r\n\r\n") }
        // Loopback delivers before `send` returns.
        mayGoOn.set()
        try body(engine, clients, handler)
    }

    @Test func whatWaitsForATurnIsServedWithoutATask() throws {
        try withCrowd(of: 8) { engine, clients, handler in
            for client in clients { #expect(client.receive(until: "/slow\n").hasSuffix("/slow\n")) }
            #expect(engine.listener.registry.counters.count(of: .deferredTurn) >= 7)
            #expect(handler.calls == .init(atOnce: 16, byTask: 0))
        }
    }

    @Test func aConnectionThatIsClosedWhileItWaitsIsNotServed() throws {
        try withCrowd(of: 8) { engine, clients, handler in
            engine.onLoop { [listener = engine.listener] in listener.abort() }
            for client in clients { _ = client.receiveAll() }
            #expect(handler.calls.atOnce < 16, "the last ones are closed before their turn")
            #expect(handler.calls.byTask == 0)
        }
    }
}

private final class SendLog: Sendable {
    private let all = Locked<[String]>([])
    var lines: [String] { all.with { $0 } }
    func note(_ line: String) { all.with { $0.append(line) } }
}

/// Notes when it is called, and may have another one called. Unchecked: confined to its loop.
private final class NotingSender: LateSender, @unchecked Sendable {
    private let log: SendLog
    private let loop: EventLoop
    private let name: String?
    private let next: String?

    /// Notes the turn as well, if it has a name.
    init(_ log: SendLog, loop: EventLoop, name: String?, next: String? = nil) {
        (self.log, self.loop, self.name, self.next) = (log, loop, name, next)
    }

    func sendNow() {
        log.note(name.map { "\($0) in \(loop.turn)" } ?? "sent")
        if let next { loop.sendLate(NotingSender(log, loop: loop, name: next)) }
    }
}

/// Answers with the target; for `/slow` it uses up the turn of its address.
private final class SlowHandler: Handler {
    struct Calls: Equatable {
        var atOnce = 0
        var byTask = 0
    }

    private let counted = Locked(Calls())
    var calls: Calls { counted.with { $0 } }
    /// The targets, and `sent` when what `/late` sends late is sent.
    let log = SendLog()

    func handleAtOnce(_ exchange: any Exchange) -> ImmediateOutcome {
        counted.with { $0.atOnce += 1 }
        let target = exchange.request.text(exchange.request.target)
        log.note(target)
        if target == "/late" {
            exchange.loop.sendLate(NotingSender(log, loop: exchange.loop, name: nil))
        }
        let pause = EventLoop.nanoseconds() + 400_000
        while target == "/refused", EventLoop.nanoseconds() < pause {}
        let end = EventLoop.nanoseconds() + 2 * LoopTimeScheduler.firstAllowance
        while target == "/slow", EventLoop.nanoseconds() < end {}
        let response = ResponseBytes()
        response.begin(status: 200)
        response.body.append(Array("\(target)\n".utf8).span)
        return exchange.respondAtOnce(response) ? .answered : .declined
    }

    func handle(_ exchange: any Exchange) async {
        counted.with { $0.byTask += 1 }
        await exchange.respond(ServerResponse(status: 200, type: "text/plain", body: Array("late\n".utf8)))
    }

    func refuse(_ refusal: Refusal, on exchange: any Exchange) async {
        await exchange.respond(ServerResponse(status: refusal.code.status, type: "text/plain", body: []))
    }
}
