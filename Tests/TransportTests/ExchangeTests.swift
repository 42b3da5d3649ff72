import CountersignMemory
import CountersignTestServer
import CountersignTransport
import CountersignTrust
import Testing
import Waiting

/// What goes out, and what comes in.
@Suite(.timeLimit(.minutes(15)))
struct ExchangeTests {
    private func transport(_ change: (inout TransportOptions) -> Void = { _ in }) throws -> HTTPTransport {
        var options = TransportOptions()
        change(&options)
        return try HTTPTransport(trust: Trust([], others: .refused), options: options)
    }

    @Test func goesOutAsItStands() async throws {
        let heads = Locked<[String]>([])
        let bodies = Locked<[[UInt8]]>([])
        let server = try TestServer(.plain) { connection in
            while let head = connection.readHead() {
                heads.with { $0.append(head) }
                let length = head.split(separator: "\r\n").first { $0.hasPrefix("Content-Length: ") }.flatMap
                {
                    Int($0.dropFirst(16))
                }
                let body = connection.readBody(length ?? 0)
                bodies.with { $0.append(body) }
                connection.answer("404 Not Found", body: "no", fields: "X-Twice: a\r\nx-twice:  b \r\n")
            }
        }
        defer { server.stop() }
        let transport = try transport()
        var request = OutgoingRequest(
            "PATCH", origin: try server.plainOrigin, target: "/a%2Fb//../c?x=%20&y",
            fields: [
                HeaderField("B-second", value: "2"), HeaderField("a-First", value: ""),
                HeaderField("B-second", value: "1"),
            ],
            body: .bytes([0, 255, 13, 10]))
        request.authority = "other.example:1"
        let response = try await transport.send(request)
        #expect(response.status == 404)
        #expect(response.fields.map(\.name) == ["X-Twice", "x-twice", "Content-Length"])
        #expect(response.fields.map { String(decoding: $0.value, as: UTF8.self) } == ["a", "b", "2"])
        #expect(try await response.body.collect(upTo: 2) == Array("no".utf8))
        // Every byte of the head is what was asked for, and what says where the body ends.
        let expected = """
            PATCH /a%2Fb//../c?x=%20&y HTTP/1.1\r\nHost: other.example:1\r\nContent-Length: 4\r\nB-second: 2\r
            a-First:\r\nB-second: 1\r\n\r\n
            """
        let head = try #require(heads.with { $0.first })
        #expect(Set(head.split(separator: "\r\n")) == Set(expected.split(separator: "\r\n")))
        #expect(head.hasPrefix("PATCH /a%2Fb//../c?x=%20&y HTTP/1.1\r\nHost: other.example:1\r\n"))
        #expect(bodies.with { $0 } == [[0, 255, 13, 10]])

        // The same connection again, for a request without a body that must say so, and one that must not.
        _ = await outcome(transport, OutgoingRequest("POST", origin: try server.plainOrigin, target: "/"))
        _ = await outcome(transport, OutgoingRequest("DELETE", origin: try server.plainOrigin, target: "/"))
        let rest = heads.with { Array($0.dropFirst()) }
        #expect(
            rest.count == 2 && rest[0].contains("Content-Length: 0\r\n")
                && !rest[1].contains("Content-Length"))
        #expect(server.tally.connections == 1)
    }

    @Test(
        "fields that libcurl would make itself, at any place, and empty ones go out once",
        arguments: [
            [("Accept", "a/b"), ("X-One", "1"), ("User-Agent", "mine"), ("Content-Type", "c/d")],
            [("X-One", "1"), ("Accept", "a/b"), ("content-type", "c/d")], [("X-Empty", "")],
            [("X-Empty", ""), ("X-Other", "")], [("User-Agent", ""), ("X-One", "1"), ("X-Empty", "")],
            [("Cookie", "a=b"), ("Authorization", "Bearer x"), ("Range", "bytes=0-1"), ("Referer", "r")],
            [("X-Long", String(repeating: "v", count: 20_000)), ("X-One", "1")], [],
        ])
    func fieldsGoOutOnce(_ fields: [(String, String)]) async throws {
        let heads = Locked<[String]>([])
        let server = try TestServer(.plain) { connection in
            while let head = connection.readHead() {
                heads.with { $0.append(head) }
                connection.answer("200 OK", body: "ok")
            }
        }
        defer { server.stop() }
        let transport = try transport()
        let given = fields.map { HeaderField($0.0, value: $0.1) }
        let plain = OutgoingRequest("GET", origin: try server.plainOrigin, target: "/")
        var request = plain
        request.fields = given
        // The same handle, with other fields before and after.
        for sent in [plain, request, plain] { #expect(try await outcome(transport, sent).get() == 200) }
        let lines = fields.map { $0.1.isEmpty ? "\($0.0):" : "\($0.0): \($0.1)" }
        let host = "Host: \(plain.authority)"
        let expected = [[host], [host] + lines, [host]].map { lines in
            (["GET / HTTP/1.1"] + lines + ["", ""]).joined(separator: "\r\n")
        }
        #expect(heads.with { $0 } == expected)
        #expect(server.tally.connections == 1)
    }

    @Test func headHasNoBodyAndInterimAnswersArePassedOver() async throws {
        let server = try TestServer(.plain) { connection in
            while let head = connection.readHead() {
                connection.write(Array("HTTP/1.1 103 Early Hints\r\nLink: x\r\n\r\n".utf8))
                let body = head.hasPrefix("HEAD") ? "" : "12345"
                connection.write(Array("HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\n\(body)".utf8))
            }
        }
        defer { server.stop() }
        let transport = try transport()
        for (method, expected) in [("HEAD", ""), ("GET", "12345")] {
            let response = try await transport.send(
                OutgoingRequest(method, origin: try server.plainOrigin, target: "/"))
            #expect(response.status == 200 && response.value(of: "link") == nil)
            #expect(try await response.body.collect(upTo: 10) == Array(expected.utf8))
        }
    }

    @Test func redirectsAreNotFollowed() async throws {
        let server = try TestServer(.plain) { connection in
            while connection.readHead() != nil {
                connection.answer("302 Found", fields: "Location: /elsewhere\r\n")
            }
        }
        defer { server.stop() }
        #expect(
            try await outcome(
                transport(), OutgoingRequest("GET", origin: try server.plainOrigin, target: "/")
            ).get() == 302)
        #expect(server.tally.connections == 1)
    }

    @Test(arguments: [
        OutgoingRequest("GET", origin: .nowhere, target: "/", fields: [HeaderField("X", value: "a\r\nY: b")]),
        OutgoingRequest("GET", origin: .nowhere, target: "/", fields: [HeaderField("X", bytes: [0])]),
        OutgoingRequest("GET", origin: .nowhere, target: "/", fields: [HeaderField("X: y\r\nZ", value: "")]),
        OutgoingRequest(
            "GET", origin: .nowhere, target: "/", fields: [HeaderField("content-Length", value: "3")]),
        OutgoingRequest(
            "GET", origin: .nowhere, target: "/", fields: [HeaderField("Transfer-Encoding", value: "chunked")]
        ),
        OutgoingRequest("GET", origin: .nowhere, target: "/ HTTP/1.1\r\nX: y"),
        OutgoingRequest("GET", origin: .nowhere, target: "http://elsewhere/"),
        OutgoingRequest("GET /x", origin: .nowhere, target: "/"),
        OutgoingRequest("", origin: .nowhere, target: "/"),
        OutgoingRequest("HEAD", origin: .nowhere, target: "/", body: .bytes([1])),
        OutgoingRequest("CONNECT", origin: .nowhere, target: "/"),
    ])
    func whatWouldBeAnotherRequestIsRefused(_ request: OutgoingRequest) async throws {
        guard case .failure(let error) = await outcome(try transport(), request),
            case .malformedRequest = error.cause
        else {
            Issue.record("sent")
            return
        }
        #expect(error.fate == .notSent)
    }

    /// libcurl sends a request again by itself where a connection that was used before closes without an
    /// answer.
    @Test(arguments: ["GET", "POST"])
    func nothingIsSentTwice(_ method: String) async throws {
        let seen = Locked(0)
        let server = try TestServer(.plain) { connection in
            guard connection.readHead() != nil else { return }
            connection.answer()
            while connection.readHead() != nil {
                seen.with { $0 += 1 }
                return
            }
        }
        defer { server.stop() }
        let transport = try transport()
        #expect(
            try await outcome(transport, OutgoingRequest("GET", origin: try server.plainOrigin, target: "/"))
                .get() == 200)
        let second = await outcome(
            transport, OutgoingRequest(method, origin: try server.plainOrigin, target: "/"))
        guard case .failure(let error) = second, case .connectionLost = error.cause else {
            Issue.record("\(second)")
            return
        }
        #expect(error.fate == .outcomeUnknown)
        #expect(seen.with { $0 } == 1)
    }

    @Test func outlivesTheValueThatSentIt() async throws {
        let mayAnswer = Locked(false)
        let server = try TestServer(.plain) { connection in
            guard connection.readHead() != nil else { return }
            connection.write(Array("HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\n".utf8))
            blockUntil("the transport has ended") { mayAnswer.with { $0 } }
            connection.write(Array("late".utf8))
        }
        defer { server.stop() }
        let request = OutgoingRequest("GET", origin: try server.plainOrigin, target: "/")
        var transport: HTTPTransport? = try transport()
        weak let gone = transport
        let response = try await transport?.send(request)
        transport = nil
        await until("the transport's end") { gone == nil }
        mayAnswer.with { $0 = true }
        #expect(try await response?.body.collect(upTo: 10) == Array("late".utf8))
    }
}

extension Origin {
    fileprivate static let nowhere: Origin = {
        guard let host = try? Trust.Host("nowhere.invalid") else { preconditionFailure("a host") }
        return Origin(.plaintext, host: host)
    }()
}

extension OutgoingRequest: CustomTestStringConvertible {
    /// As a test's argument is shown.
    public var testDescription: String { "\(method) \(String(decoding: target, as: UTF8.self)) \(fields)" }
}
