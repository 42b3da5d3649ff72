import CountersignTestKit
import CountersignTestServer
import CountersignTransport
import CountersignTrust
import Testing
import Waiting

/// What went wrong, and what that says of the request.
@Suite(.timeLimit(.minutes(15)))
struct FailureTests {
    private func failure(
        _ request: OutgoingRequest, _ change: (inout TransportOptions) -> Void = { _ in }
    ) async throws -> TransportError? {
        var options = try Authorities.shared.get().options
        change(&options)
        let transport = try HTTPTransport(trust: .system, options: options)
        guard case .failure(let error) = await outcome(transport, request) else { return nil }
        return error
    }

    @Test(arguments: [
        (NetworkReachability.State.online, TransportError.Cause.hostNotFound), (.offline, .offline),
    ])
    func aNameThatIsNotFound(_ state: NetworkReachability.State, _ expected: TransportError.Cause)
        async throws
    {
        let request = OutgoingRequest(
            "GET", origin: Origin(.tls, host: try Trust.Host("nothing.invalid")), target: "/")
        let error = try await failure(request) { $0.reachability = NetworkReachability { state } }
        #expect(error?.cause == expected && error?.fate == .notSent)
    }

    @Test func nobodyListens() async throws {
        let server = try TestServer(.plain) { _ in }
        let origin = try server.plainOrigin
        server.stop()
        await until("the server's end") { server.isClosed }
        let error = try await failure(OutgoingRequest("GET", origin: origin, target: "/"))
        #expect(error?.cause == .connectionRefused && error?.fate == .notSent)
    }

    @Test func noHandshakeInTime() async throws {
        let server = try TestServer(.plain) { while $0.read() != nil {} }
        defer { server.stop() }
        let error = try await failure(OutgoingRequest("GET", origin: try server.origin(), target: "/")) {
            $0.connectTimeout = .within(.milliseconds(100))
        }
        #expect(error?.cause == .timedOut(.connecting) && error?.fate == .notSent)
    }

    @Test func aServerThatHangs() async throws {
        let server = try TestServer(.plain) { while $0.read() != nil {} }
        defer { server.stop() }
        let request = OutgoingRequest("POST", origin: try server.plainOrigin, target: "/", body: .bytes([1]))
        let error = try await failure(request) { $0.idleTimeout = .within(.milliseconds(100)) }
        #expect(error?.cause == .timedOut(.idle) && error?.fate == .outcomeUnknown)
        await until("the request's bytes") { server.tally.received > 0 }
    }

    @Test func anAnswerThatDripsForEver() async throws {
        let clock = ManualClock()
        let server = try TestServer(.plain) { connection in
            guard connection.readHead() != nil else { return }
            connection.write(Array("HTTP/1.1 200 OK\r\nContent-Length: 1000\r\n\r\n".utf8))
            // A byte each second.
            blockUntil("the client gives up") {
                clock.advance(by: .seconds(1))
                return !connection.write([0x61])
            }
        }
        defer { server.stop() }
        let error = try await failure(OutgoingRequest("GET", origin: try server.plainOrigin, target: "/")) {
            $0.clock = clock.deviceClock
            $0.idleTimeout = .within(.seconds(30))
            $0.totalTimeout = .within(.seconds(60))
        }
        #expect(error?.cause == .timedOut(.total) && error?.fate == .brokenOff)
    }

    @Test func anAnswerThatBreaksOff() async throws {
        let server = try TestServer(.plain) { connection in
            guard connection.readHead() != nil else { return }
            connection.write(Array("HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\n12345".utf8))
        }
        defer { server.stop() }
        let error = try await failure(OutgoingRequest("GET", origin: try server.plainOrigin, target: "/"))
        guard case .connectionLost = error?.cause else {
            Issue.record("\(String(describing: error))")
            return
        }
        #expect(error?.fate == .brokenOff)
    }

    @Test func aConnectionThatIsCutBeforeTheAnswer() async throws {
        let server = try TestServer(.plain) { _ = $0.readHead() }
        defer { server.stop() }
        let error = try await failure(OutgoingRequest("GET", origin: try server.plainOrigin, target: "/"))
        guard case .connectionLost = error?.cause else {
            Issue.record("\(String(describing: error))")
            return
        }
        #expect(error?.fate == .outcomeUnknown)
    }

    @Test(arguments: [
        "hello\r\n\r\n", "HTTP/1.1 20 OK\r\n\r\n", "HTTP/1.1 999 X\r\n\r\n", "SSH-2.0-x\r\n\r\n",
    ])
    func whatIsNotHTTP(_ answer: String) async throws {
        let server = try TestServer(.plain) { connection in
            guard connection.readHead() != nil else { return }
            connection.write(Array(answer.utf8))
        }
        defer { server.stop() }
        let error = try await failure(OutgoingRequest("GET", origin: try server.plainOrigin, target: "/"))
        guard case .malformedAnswer = error?.cause else {
            Issue.record("\(String(describing: error))")
            return
        }
        #expect(error?.fate == .outcomeUnknown)
    }

    @Test func aHeadWithoutEnd() async throws {
        let server = try TestServer(.plain) { connection in
            guard connection.readHead() != nil else { return }
            connection.write(Array("HTTP/1.1 200 OK\r\n".utf8))
            let line = Array("X-Filler: \(String(repeating: "x", count: 1000))\r\n".utf8)
            while connection.write(line) {}
        }
        defer { server.stop() }
        let error = try await failure(OutgoingRequest("GET", origin: try server.plainOrigin, target: "/"))
        guard case .malformedAnswer = error?.cause else {
            Issue.record("\(String(describing: error))")
            return
        }
    }

    @Test func noTLSThere() async throws {
        let server = try TestServer(.plain) { connection in
            _ = connection.read()
            connection.write(Array("HTTP/1.1 400 Bad Request\r\n\r\n".utf8))
        }
        defer { server.stop() }
        let error = try await failure(OutgoingRequest("GET", origin: try server.origin(), target: "/"))
        guard case .tls = error?.cause else {
            Issue.record("\(String(describing: error))")
            return
        }
        #expect(error?.fate == .notSent)
    }

    @Test func anAnswerThatIsTooLarge() async throws {
        let server = try TestServer(.plain) { connection in
            guard connection.readHead() != nil else { return }
            connection.answer("200 OK", body: "12345")
        }
        defer { server.stop() }
        let transport = try HTTPTransport(trust: .system)
        let response = try await transport.send(
            OutgoingRequest("GET", origin: try server.plainOrigin, target: "/"))
        await #expect(throws: TransportError.self) { try await response.body.collect(upTo: 4) }
    }
}
