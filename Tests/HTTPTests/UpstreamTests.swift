import CountersignMemory
import CountersignWire
import Glibc
import Testing
import Waiting

@testable import CountersignHTTP

/// Forwards everything; bodies over 64 KiB stream past `Sum`.
final class ForwardingHandler: Handler, @unchecked Sendable {
    private var pool: UpstreamPool?
    let target: UpstreamTarget
    let deadlines: Deadlines
    let verdict: Refusal?
    private let echo = EchoHandler()

    init(port: Int, deadlines: Deadlines, verdict: Refusal?) throws {
        target = UpstreamTarget(host: "127.0.0.1", port: port, tls: nil)
        try target.resolve()
        self.deadlines = deadlines
        self.verdict = verdict
    }

    func handle(_ exchange: any Exchange) async {
        // Made on the loop that uses it.
        let pool = self.pool ?? UpstreamPool(target: target, loop: exchange.loop, deadlines: deadlines)
        self.pool = pool
        var forwarding = ForwardedRequest(fields: .all, added: Array("Countersign-App: demo\r\n".utf8))
        do {
            if case .length(let length) = exchange.request.framing, length > 65_536 {
                exchange.request.isBodyWhole = false
                forwarding.inspector = Verdict(verdict)
            } else {
                try await exchange.readWholeBody()
            }
            try await exchange.forward(forwarding, to: pool)
        } catch {
            await echo.refuse(error, on: exchange)
        }
    }

    func refuse(_ refusal: Refusal, on exchange: any Exchange) async {
        await echo.refuse(refusal, on: exchange)
    }
}

final class Verdict: BodyInspector {
    private let refusal: Refusal?
    init(_ refusal: Refusal?) { self.refusal = refusal }
    func inspect(_ bytes: Span<UInt8>) {}
    func finish() throws(Refusal) { if let refusal { throw refusal } }
}

@Suite struct UpstreamTests {
    private func withGateway(
        deadlines: Deadlines = Deadlines(), verdict: Refusal? = nil, backend: any Handler = EchoHandler(),
        _ body: (RawClient, Engine) throws -> Void
    ) throws {
        var limits = Limits()
        limits.heldBodyBytes = 8 << 20
        let backend = try Engine(limits: limits, handler: backend)
        let gateway = try Engine(
            handler: ForwardingHandler(port: backend.port, deadlines: deadlines, verdict: verdict))
        defer {
            gateway.stop()
            backend.stop()
        }
        let client = try RawClient(port: gateway.port)
        defer { client.close() }
        try body(client, backend)
    }

    @Test func forwardsTheTargetAndTheBody() throws {
        try withGateway { client, _ in
            for number in 0..<20 {
                client.send(
                    """
                    POST /a%2Fb//c?q=\(number) HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\n\
                    3\r\nabc\r\n0\r\n\r\n
                    """
                )
                let answer = client.receive(until: "abc")
                #expect(
                    answer.hasPrefix("HTTP/1.1 200 OK\r\n")
                        && answer.hasSuffix("POST\n/a%2Fb//c?q=\(number)\nabc"))
            }
        }
    }

    @Test func streamsALargeBodyBothWays() throws {
        try withGateway { client, _ in
            let body = String(repeating: "0123456789abcdef", count: 200_000)
            client.send(
                """
                POST /big HTTP/1.1\r\nHost: h\r\nConnection: close\r\nContent-Length: \(body.utf8.count)\r\n\
                \r\n
                """
            )
            client.send(body)
            let answer = client.receiveAll()
            #expect(answer.hasSuffix("POST\n/big\n" + body))
        }
    }

    @Test func holdsTheLastBytesBackFromAWrongBody() throws {
        let seen = SeenRequests()
        try withGateway(verdict: Refusal(.bodyMismatch, detail: "wrong"), backend: seen) { client, _ in
            let body = String(repeating: "x", count: 300_000)
            client.send(
                """
                POST /big HTTP/1.1\r\nHost: h\r\nConnection: close\r\nContent-Length: \(body.utf8.count)\r\n\
                \r\n
                """
                    + body)
            let answer = client.receiveAll()
            #expect(answer.hasPrefix("HTTP/1.1 400 ") && answer.hasSuffix("wrong"))
            // The backend has a loop of its own, and may come to it later.
            seen.ended.wait()
        }
        // The backend saw a request begin, and its body cut off.
        #expect(seen.begun == 1 && seen.complete == 0)
    }

    @Test func sendsAnIdempotentRequestAgainOnANewConnection() throws {
        try withGateway { client, backend in
            for method in ["GET", "PUT", "POST"] {
                client.send("\(method) /1 HTTP/1.1\r\nHost: h\r\nContent-Length: 0\r\n\r\n")
                #expect(client.receive(until: "/1\n").contains("200 OK"))
                // The pooled connection dies without a word that the gateway could have read in time.
                backend.onLoop { backend.listener.abort() }
                client.send("\(method) /2 HTTP/1.1\r\nHost: h\r\nContent-Length: 0\r\n\r\n")
                let second = client.receive(until: "\r\n\r\n")
                #expect(second.contains("200 OK") || method == "POST", "\(method)")
                if second.contains("502") { break }
                if !second.contains("/2\n") { _ = client.receive(until: "/2\n") }
            }
        }
    }

    @Test func says502And504() throws {
        var deadlines = Deadlines()
        deadlines.upstreamAnswer = 1
        let silent = SilentHandler()
        try withGateway(deadlines: deadlines, backend: silent) { client, _ in
            defer { silent.release() }
            client.send("GET / HTTP/1.1\r\nHost: h\r\n\r\n")
            #expect(client.receive(until: "\r\n\r\n").hasPrefix("HTTP/1.1 504 "))
        }
        let gateway = try Engine(handler: ForwardingHandler(port: 1, deadlines: Deadlines(), verdict: nil))
        defer { gateway.stop() }
        let client = try RawClient(port: gateway.port)
        defer { client.close() }
        client.send("GET / HTTP/1.1\r\nHost: h\r\n\r\n")
        #expect(client.receive(until: "\r\n\r\n").hasPrefix("HTTP/1.1 502 "))
    }
}

/// Counts requests whose head came, and those whose body did.
final class SeenRequests: Handler {
    private let counts = Locked((begun: 0, complete: 0))
    /// Set after each request.
    let ended = DispatchlessSignal()
    var begun: Int { counts.with { $0.begun } }
    var complete: Int { counts.with { $0.complete } }

    func handle(_ exchange: any Exchange) async {
        counts.with { $0.begun += 1 }
        defer { ended.set() }
        do {
            try await exchange.readWholeBody()
            counts.with { $0.complete += 1 }
            await exchange.respond(ServerResponse(status: 200, type: "text/plain", body: []))
        } catch {
            await exchange.respond(ServerResponse(status: 400, type: "text/plain", body: []))
        }
    }

    func refuse(_ refusal: Refusal, on exchange: any Exchange) async {}
}

/// Answers when it is released, and not before.
final class SilentHandler: Handler {
    private let state = Locked((isReleased: false, waiting: [UnsafeContinuation<Void, Never>]()))

    func release() {
        let waiting = state.with { state in
            state.isReleased = true
            defer { state.waiting = [] }
            return state.waiting
        }
        for continuation in waiting { continuation.resume() }
    }

    func handle(_ exchange: any Exchange) async {
        await withUnsafeContinuation { continuation in
            let isReleased = state.with { state in
                if !state.isReleased { state.waiting.append(continuation) }
                return state.isReleased
            }
            if isReleased { continuation.resume() }
        }
        await exchange.respond(ServerResponse(status: 200, type: "text/plain", body: []))
    }

    func refuse(_ refusal: Refusal, on exchange: any Exchange) async {}
}

/// What a wave of large bodies may cost before anything is known of their senders.
@Suite struct HeldBodyTests {
    @Test func refusesMoreThanStrangersMayHold() throws {
        var limits = Limits()
        limits.unprovenBytes = 100_000
        let engine = try Engine(limits: limits, handler: EchoHandler())
        defer { engine.stop() }
        let head = "POST / HTTP/1.1\r\nHost: h\r\nContent-Length: 80000\r\n\r\n"
        let first = try RawClient(port: engine.port)
        defer { first.close() }
        first.send(head + String(repeating: "a", count: 79_999))
        blockUntil("the bytes are held") { engine.registry.held.current >= 79_999 }
        let second = try RawClient(port: engine.port)
        defer { second.close() }
        second.send(head + String(repeating: "b", count: 80_000))
        #expect(second.receive(until: "\r\n\r\n").hasPrefix("HTTP/1.1 503 "))
        first.send("a")
        #expect(first.receive(until: "\r\n\r\n").hasPrefix("HTTP/1.1 200 "))
        // What was let go can be held again.
        let third = try RawClient(port: engine.port)
        defer { third.close() }
        third.send(head + String(repeating: "c", count: 80_000))
        #expect(third.receive(until: "\r\n\r\n").hasPrefix("HTTP/1.1 200 "))
    }
}
