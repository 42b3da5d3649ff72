import CountersignMemory
import CountersignTestServer
import CountersignTransport
import CountersignTrust
import Testing
import Waiting

/// Another trust, while connections stand.
@Suite(.timeLimit(.minutes(15)))
struct ReplacementTests {
    @Test func oldConnectionsAreCut() async throws {
        let authorities = try Authorities.shared.get()
        let leaf = try authorities.server()
        let gone = Locked(0)
        let server = try TestServer(.tls(TestServer.Credentials([leaf, authorities.middle]))) { connection in
            while let head = connection.readHead() {
                if head.hasPrefix("GET /slow ") {
                    connection.write(Array("HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\n123".utf8))
                } else {
                    connection.answer()
                }
            }
            gone.with { $0 += 1 }
        }
        defer { server.stop() }
        func trust(_ pin: String) throws -> Trust {
            Trust([try .host("*.example.com", pins: [pin], backups: [strangePin])], others: .refused)
        }
        let transport = try HTTPTransport(trust: trust(pin(leaf)), options: authorities.options)
        let origin = try server.origin()
        // One that is on its way, one that idles.
        let slow = try await transport.send(OutgoingRequest("GET", origin: origin, target: "/slow"))
        #expect(
            try await outcome(transport, OutgoingRequest("GET", origin: origin, target: "/")).get() == 200)
        #expect(server.tally.connections == 2 && gone.with { $0 } == 0)

        transport.replaceTrust(by: try trust(pin(authorities.other)))
        await #expect(throws: TransportError(.trustReplaced, fate: .brokenOff)) {
            try await slow.body.collect(upTo: 100)
        }
        let before = server.tally.received
        guard
            case .failure(let error) = await outcome(
                transport, OutgoingRequest("GET", origin: origin, target: "/")),
            case .untrusted(let verdict) = error.cause
        else {
            Issue.record("the old trust goes on")
            return
        }
        #expect(verdict.reasons == [.pinNotMet] && server.tally.received == before)
        await until("the end of both connections") { gone.with { $0 } >= 2 }

        // And a third one, which the server meets.
        transport.replaceTrust(by: try trust(pin(authorities.middle)))
        #expect(
            try await outcome(transport, OutgoingRequest("GET", origin: origin, target: "/")).get() == 200)
    }
}
