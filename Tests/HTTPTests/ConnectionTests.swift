import CountersignWire
import Glibc
import Testing
import Waiting

@testable import CountersignHTTP

@Suite struct ConnectionTests {
    private func withEngine(
        limits: Limits = Limits(), deadlines: Deadlines = Deadlines(),
        _ body: (RawClient, Engine) throws -> Void
    ) throws {
        let engine = try Engine(limits: limits, deadlines: deadlines, handler: EchoHandler())
        defer { engine.stop() }
        let client = try RawClient(port: engine.port)
        defer { client.close() }
        try body(client, engine)
    }

    @Test func answersManyOnOneConnection() throws {
        try withEngine { client, _ in
            for number in 0..<50 {
                client.send("GET /\(number) HTTP/1.1\r\nHost: h\r\n\r\n")
                let answer = client.receive(until: "/\(number)\n")
                #expect(answer.hasPrefix("HTTP/1.1 200 OK\r\n"))
                #expect(!answer.contains("Connection: close"))
            }
        }
    }

    @Test func answersPipelinedRequestsInOrder() throws {
        try withEngine { client, _ in
            client.send(
                "POST /a HTTP/1.1\r\nHost: h\r\nContent-Length: 3\r\n\r\nabc"
                    + """
                    POST /b HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nde\r\n1\r\n\
                    f\r\n0\r\n\r\n
                    """
                    + "GET /c HTTP/1.1\r\nHost: h\r\nConnection: close\r\n\r\n")
            let all = client.receiveAll()
            let places = ["POST\n/a\nabc", "POST\n/b\ndef", "GET\n/c\n"].map { all.range(of: $0)?.lowerBound }
            #expect(places.allSatisfy { $0 != nil })
            #expect(places[0]! < places[1]! && places[1]! < places[2]!)
            #expect(all.components("HTTP/1.1 200 OK") == 3)
        }
    }

    @Test func answersHEADWithoutABody() throws {
        try withEngine { client, _ in
            client.send("HEAD /x HTTP/1.1\r\nHost: h\r\nConnection: close\r\n\r\n")
            let answer = client.receiveAll()
            #expect(answer.contains("Content-Length: 8\r\n"))
            #expect(answer.hasSuffix("\r\n\r\n"))
        }
    }

    @Test func saysContinueOnlyWhenAskedAndBeforeTheBody() throws {
        try withEngine { client, _ in
            client.send("POST / HTTP/1.1\r\nHost: h\r\nExpect: 100-continue\r\nContent-Length: 2\r\n\r\n")
            #expect(client.receive() == "HTTP/1.1 100 Continue\r\n\r\n")
            client.send("ok")
            #expect(client.receive(until: "ok").hasPrefix("HTTP/1.1 200 OK"))
        }
    }

    @Test func closesBehindARefusalAndStillDeliversIt() throws {
        try withEngine { client, _ in
            client.send("GET / HTTP/1.1\r\nHost : h\r\n\r\n" + String(repeating: "x", count: 200_000))
            let answer = client.receiveAll()
            #expect(answer.hasPrefix("HTTP/1.1 400 Bad Request\r\n"))
            #expect(answer.contains("Connection: close\r\n"))
            #expect(answer.hasSuffix("white space stands before a header's colon"))
        }
    }

    @Test func cutsAHeadThatComesTooSlowly() throws {
        var deadlines = Deadlines()
        deadlines.head = 2
        try withEngine(deadlines: deadlines) { client, _ in
            client.send("GET / HTTP/1.1\r\nHost: ")
            // A byte is progress, and does not help.
            blockUntil("the deadline") {
                client.send("h")
                var readable = pollfd(fd: client.descriptor, events: Int16(POLLIN), revents: 0)
                return poll(&readable, 1, 0) > 0
            }
            #expect(client.receiveAll().hasPrefix("HTTP/1.1 408 "))
        }
    }

    @Test func endsIdleConnections() throws {
        var deadlines = Deadlines()
        deadlines.idle = 1
        try withEngine(deadlines: deadlines) { client, _ in
            client.send("GET / HTTP/1.1\r\nHost: h\r\n\r\n")
            #expect(client.receive(until: "GET").contains("200"))
            #expect(client.receiveAll() == "")
        }
    }

    /// Those over the limit are let in for their first request. One that proves nothing by it is answered,
    /// and told that this was the last answer.
    @Test func endsConnectionsOverTheLimitBehindTheirFirstAnswer() throws {
        var limits = Limits()
        limits.connections = 1
        try withEngine(limits: limits) { first, engine in
            first.send("POST / HTTP/1.1\r\nHost: h\r\nExpect: 100-continue\r\nContent-Length: 2\r\n\r\n")
            #expect(first.receive(until: "Continue\r\n\r\n").contains("100"))
            let second = try RawClient(port: engine.port)
            defer { second.close() }
            second.send("GET / HTTP/1.1\r\nHost: h\r\n\r\n")
            let answer = second.receiveAll()
            #expect(answer.hasPrefix("HTTP/1.1 200 ") && answer.contains("Connection: close"))
            first.send("ok")
            #expect(first.receive(until: "\r\n\r\n").hasPrefix("HTTP/1.1 200 "))
        }
    }

    /// The body's end came after the answer had announced the connection's: that is decided once.
    @Test func endsAfterAnAnswerThatSaidSo() throws {
        let engine = try Engine(handler: EarlyHandler())
        defer { engine.stop() }
        let client = try RawClient(port: engine.port)
        defer { client.close() }
        client.send("POST / HTTP/1.1\r\nHost: h\r\nContent-Length: 2\r\n\r\n")
        let first = client.receive(until: "early")
        #expect(first.contains("Connection: close\r\n"))
        client.send("okGET / HTTP/1.1\r\nHost: h\r\n\r\n")
        #expect(client.receiveAll() == "")
    }

    @Test func answersWithOneDate() throws {
        try withEngine { client, _ in
            client.send("GET / HTTP/1.1\r\nHost: h\r\n\r\n")
            #expect(client.receive(until: "GET").components("\r\nDate: ") == 1)
        }
        let text = String(decoding: DateField.bytes(at: 784_111_777), as: UTF8.self)
        #expect(text == "Date: Sun, 06 Nov 1994 08:49:37 GMT\r\n")
    }

    @Test func drainsIdleConnections() throws {
        try withEngine { client, engine in
            client.send("GET / HTTP/1.1\r\nHost: h\r\n\r\n")
            #expect(client.receive(until: "GET").contains("200"))
            engine.onLoop { engine.listener.drain() }
            #expect(client.receive() == "")
            #expect(throws: HTTPError.self) { try RawClient(port: engine.port) }
        }
    }
}

/// Answers before it reads the body.
private struct EarlyHandler: Handler {
    func handle(_ exchange: any Exchange) async {
        await exchange.respond(ServerResponse(status: 200, type: "text/plain", body: Array("early".utf8)))
        try? await exchange.readWholeBody()
    }

    func refuse(_ refusal: Refusal, on exchange: any Exchange) async {}
}

extension String {
    fileprivate func components(_ part: String) -> Int {
        var count = 0
        var rest = self[...]
        while let found = rest.range(of: part) {
            count += 1
            rest = rest[found.upperBound...]
        }
        return count
    }

    fileprivate func range(of part: String) -> Range<String.Index>? { self[...].range(of: part) }
}

extension Substring {
    fileprivate func range(of part: String) -> Range<String.Index>? {
        var start = startIndex
        while start < endIndex {
            if self[start...].utf8.starts(with: part.utf8) {
                return start..<(utf8.index(start, offsetBy: part.utf8.count))
            }
            start = utf8.index(after: start)
        }
        return nil
    }
}
