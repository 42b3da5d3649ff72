// Proves that a response that a handler gives without waiting arrives whole, whatever the client does, and that
// a pipelined burst of such requests is not answered within one callback.

import CountersignMemory
import CountersignWire
import Glibc
import Testing

@testable import CountersignHTTP

@Suite struct ImmediateResponseTests {
    private func withEngine(_ body: (RawClient, ImmediateEchoHandler, Engine) throws -> Void) throws {
        let handler = ImmediateEchoHandler()
        let engine = try Engine(handler: handler)
        defer { engine.stop() }
        let client = try RawClient(port: engine.port)
        defer { client.close() }
        try body(client, handler, engine)
    }

    @Test func answersManyOnOneConnection() throws {
        try withEngine { client, handler, _ in
            for number in 0..<50 {
                client.send("GET /\(number) HTTP/1.1\r\nHost: h\r\n\r\n")
                let answer = client.receive(until: "/\(number)\n")
                #expect(answer.hasPrefix("HTTP/1.1 403 Forbidden\r\nDate: "))
                #expect(answer.contains("\r\nX-Kind: at-once\r\nContent-Length: "))
                #expect(!answer.contains("Connection: close"))
            }
            #expect(handler.calls == .init(atOnce: 50, byTask: 0))
        }
    }

    @Test func answersHEADWithoutABody() throws {
        try withEngine { client, _, _ in
            client.send("HEAD /x HTTP/1.1\r\nHost: h\r\nConnection: close\r\n\r\n")
            let answer = client.receiveAll()
            #expect(answer.contains("Content-Length: 3\r\n"))
            #expect(answer.hasSuffix("\r\n\r\n"))
        }
    }

    @Test(
        "closes behind the response where the client says so, and where a body is still to come",
        arguments: [
            "GET /a HTTP/1.1\r\nHost: h\r\nConnection: close\r\n\r\n", "GET /a HTTP/1.0\r\nHost: h\r\n\r\n",
            "POST /a HTTP/1.1\r\nHost: h\r\nContent-Length: 100000\r\n\r\nabc",
        ])
    func closes(_ request: String) throws {
        try withEngine { client, handler, _ in
            client.send(request)
            let answer = client.receiveAll()
            #expect(answer.contains("Connection: close\r\n"))
            #expect(answer.hasSuffix("\r\n\r\n/a\n"))
            #expect(handler.calls == .init(atOnce: 1, byTask: 0))
        }
    }

    @Test func aBodyThatHasArrivedIsSkipped() throws {
        try withEngine { client, _, _ in
            client.send("POST /a HTTP/1.1\r\nHost: h\r\nContent-Length: 3\r\n\r\nabc")
            #expect(!client.receive(until: "/a\n").contains("Connection: close"))
            client.send("GET /b HTTP/1.1\r\nHost: h\r\n\r\n")
            #expect(client.receive(until: "/b\n").hasSuffix("/b\n"))
        }
    }

    @Test func aResponseThatIsLongerThanTheOutputComesFromTheTask() throws {
        try withEngine { client, handler, _ in
            client.send("GET /200000 HTTP/1.1\r\nHost: h\r\nConnection: close\r\n\r\n")
            let answer = client.receiveAll()
            #expect(answer.contains("Content-Length: 200000\r\n"))
            #expect(answer.hasSuffix(String(repeating: "x", count: 200_000)))
            #expect(handler.calls == .init(atOnce: 1, byTask: 0))
        }
    }

    @Test func aPipelinedBurstIsNotAnsweredInOneCallback() throws {
        try withEngine { client, handler, _ in
            client.send(
                (0..<100).map { "GET /\($0) HTTP/1.1\r\nHost: h\r\n\r\n" }.joined()
                    + "GET /end HTTP/1.1\r\nHost: h\r\nConnection: close\r\n\r\n")
            let all = client.receiveAll()
            #expect(all.split(separator: "HTTP/1.1 403 Forbidden\r\n").count == 101)
            #expect(all.hasSuffix("/end\n"))
            #expect(handler.calls == .init(atOnce: 1, byTask: 100))
        }
    }

    /// More than the sockets hold: the rest waits until the client reads.
    @Test func aClientThatReadsLateGetsEverything() throws {
        try withEngine { client, handler, engine in
            let count = 600
            client.send(
                String(repeating: "GET /30000 HTTP/1.1\r\nHost: h\r\n\r\n", count: count)
                    + "GET /end HTTP/1.1\r\nHost: h\r\nConnection: close\r\n\r\n")
            // Nothing more is handled in a hundred turns of the loop.
            var last = -1
            while case let now = handler.calls.byTask, now != last {
                last = now
                for _ in 0..<100 { engine.onLoop {} }
            }
            #expect(last < count)
            let all = client.receiveAll()
            #expect(all.utf8.count { $0 == UInt8(ascii: "x") } == count * 30_000)
            #expect(all.hasSuffix("/end\n"))
        }
    }
}

/// Refuses everything with the target, or as many letters as it says, in bytes.
private final class ImmediateEchoHandler: Handler {
    struct Calls: Equatable {
        var atOnce = 0
        var byTask = 0
    }

    private let counted = Locked(Calls())
    var calls: Calls { counted.with { $0 } }

    private func response(to request: Request) -> ResponseBytes {
        let response = ResponseBytes()
        response.begin(status: 403)
        response.fields.append("X-Kind: at-once\r\n")
        let target = request.text(request.target)
        if let count = Int(target.dropFirst()), count > 1_000 {
            response.body.append(String(repeating: "x", count: count))
        } else {
            response.body.append("\(target)\n")
        }
        return response
    }

    func handleAtOnce(_ exchange: any Exchange) -> ImmediateOutcome {
        counted.with { $0.atOnce += 1 }
        let response = response(to: exchange.request)
        if exchange.respondAtOnce(response) { return .answered }
        let whole = ServerResponse(response)
        return .waits { await exchange.respond(whole) }
    }

    func handle(_ exchange: any Exchange) async {
        counted.with { $0.byTask += 1 }
        let response = response(to: exchange.request)
        if !exchange.respondAtOnce(response) { await exchange.respond(ServerResponse(response)) }
    }

    func refuse(_ refusal: Refusal, on exchange: any Exchange) async {
        await exchange.respond(ServerResponse(status: refusal.code.status, type: "text/plain", body: []))
    }
}
