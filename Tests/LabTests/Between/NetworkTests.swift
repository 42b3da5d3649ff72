import CountersignTestServer
import Synchronization
import Testing
import Waiting

@testable import CountersignLab

@Suite struct NetworkTests {
    private let order = RawRequest(
        method: "POST", target: "/transfer", fields: [("Host", "bank.test")],
        body: Array("to=bob&amount=10".utf8))

    @Test func anHonestNetworkCarriesAndATapHears() async throws {
        let server = try echo()
        let network = try Network(security: .plain)
        network.setServerPort(server.port)
        let tap = network.listen()
        #expect(try await victim(of: network, order).text == "POST /transfer: to=bob&amount=10")
        let recording = tap.stop()
        #expect(recording.exchanges.map(\.request.target) == ["/transfer"])
        #expect(recording.exchanges.first?.response?.text == "POST /transfer: to=bob&amount=10")
        #expect(recording.contains("bob&amount"))
        #expect(!recording.contains("carol"))
        #expect(recording.shown.contains("→ POST /transfer HTTP/1.1"))

        _ = try await victim(of: network, order)
        #expect(tap.stop().connections.count == 1, "a tap that was stopped hears nothing more")
    }

    @Test func withoutAServerConnectionsAreCut() async throws {
        let network = try Network(security: .plain)
        await #expect(throws: NetworkError.self) { try await victim(of: network, order) }
        await #expect(throws: NetworkError.notReached("there is no server yet")) {
            try await network.send(order)
        }
    }

    @Test func aTapOnTLSHearsNothingThatCanBeRead() async throws {
        let (bank, attacker) = (try Authority("bank's"), try Authority("attacker's"))
        let server = try echo(bank.server("bank.test"))
        let network = try Network(security: .tls(authority: attacker.root, host: "bank.test"))
        network.setServerPort(server.port)
        let tap = network.listen()
        #expect(try await victim(of: network, order).status == 200)
        let recording = tap.stop()
        #expect(recording.connections.count == 1)
        #expect(recording.exchanges.isEmpty)
        #expect(!recording.contains("bob"))
        #expect(recording.shown.contains("→ TLS handshake"))
    }

    @Test(arguments: [false, true]) func aManInTheMiddleReadsAndChanges(isTLS: Bool) async throws {
        let (bank, attacker) = (try Authority("bank's"), try Authority("attacker's"))
        let server = try echo(isTLS ? bank.server("bank.test") : .plain)
        let network = try Network(
            security: isTLS ? .tls(authority: attacker.root, host: "bank.test") : .plain)
        network.setServerPort(server.port)
        network.intercept { request, forward in
            var request = request
            request.body = Array("to=thief&amount=1000".utf8)
            return try? forward(request)
        }
        #expect(try await victim(of: network, order).text == "POST /transfer: to=thief&amount=1000")
        let interposed = network.interception
        #expect(interposed.connections == 1)
        #expect(interposed.handshakes == (isTLS ? 1 : 0))
        #expect(interposed.requests == 1)
        #expect(interposed.abortedHandshakes == [])
        #expect(interposed.exchanges.first?.request.body == order.body)

        network.stopIntercepting()
        #expect(try await victim(of: network, order).text == "POST /transfer: to=bob&amount=10")
        #expect(network.interception.requests == 1)
    }

    @Test func aVictimThatRefusesIsCounted() async throws {
        let (bank, attacker) = (try Authority("bank's"), try Authority("attacker's"))
        let server = try echo(bank.server("bank.test"))
        let network = try Network(security: .tls(authority: attacker.root, host: "bank.test"))
        network.setServerPort(server.port)
        network.intercept { try? $1($0) }
        await #expect(throws: NetworkError.self) { try await distrustful(network.publicPort).send(order) }
        // The victim may know of the end before the thread in the middle does.
        await until("the end of the handshake") { !network.interception.abortedHandshakes.isEmpty }
        let seen = network.interception
        #expect((seen.connections, seen.handshakes, seen.requests) == (1, 0, 0))
        #expect(seen.abortedHandshakes == ["alert unknown CA"])
        #expect(server.tally.connections == 0)
    }

    @Test func whatIsLeftAloneStaysTheSameBytes() async throws {
        let arrived = Mutex<String>("")
        let server = try TestServer(.plain) { connection in
            guard let head = connection.readHead() else { return }
            arrived.withLock { $0 = head }
            connection.write(Array("HTTP/1.1 200 Fine\r\nContent-Length:2\r\nX-Odd:  a\r\n\r\nok".utf8))
        }
        let network = try Network(security: .plain)
        network.setServerPort(server.port)
        network.intercept { try? $1($0) }
        let request = "GET /a?b=%C3%a4 HTTP/1.1\r\nhOST:bank.test\r\nX-Odd:   a\r\n\r\n"
        let link = try RawConnection.open(to: "127.0.0.1", port: network.publicPort)
        link.write(Array(request.utf8))
        #expect(
            link.read() == .bytes(Array("HTTP/1.1 200 Fine\r\nContent-Length:2\r\nX-Odd:  a\r\n\r\nok".utf8)))
        #expect(arrived.withLock { $0 } == request)
    }

    @Test func aManInTheMiddleCanLetNothingThrough() async throws {
        let server = try echo()
        let network = try Network(security: .plain)
        network.setServerPort(server.port)
        network.intercept { _, _ in nil }
        await #expect(throws: NetworkError.cut("closed")) { try await victim(of: network, order) }
        #expect(network.interception.exchanges.map { $0.response == nil } == [true])
        #expect(server.tally.connections == 0)
    }

    @Test func connectionsThatWereOpenComeBackThroughTheMiddle() async throws {
        let server = try echo()
        let network = try Network(security: .plain)
        network.setServerPort(server.port)
        let link = try RawConnection.open(to: "127.0.0.1", port: network.publicPort)
        link.write(order.bytes)
        var reader = MessageReader(link)
        #expect(try reader.response(to: "POST").message.status == 200)
        network.intercept { try? $1($0) }
        #expect(link.read() == .end("closed"))
        network.stopIntercepting()
    }

    @Test func theAttackerHasConnectionsOfHisOwn() async throws {
        let (bank, attacker) = (try Authority("bank's"), try Authority("attacker's"))
        let server = try echo(bank.server("bank.test"))
        let network = try Network(security: .tls(authority: attacker.root, host: "bank.test"))
        network.setServerPort(server.port)
        #expect(try await network.send(RawRequest(method: "GET", target: "/time")).text == "GET /time: ")
        let node = try echo(bank.server("bank.test"))
        #expect(try await network.send(order, toNodeAt: node.port).status == 200)
        #expect(node.tally.handshakes == 1)

        let before = server.tally.connections
        let answers = try await network.send(bytes: order.bytes, parallel: 8)
        #expect(answers.map(\.status) == Array(repeating: 200, count: 8))
        #expect(server.tally.connections - before == 8)
    }

    @Test func aDoorLeadsToTheServerUnderAnotherName() async throws {
        let (bank, attacker) = (try Authority("bank's"), try Authority("attacker's"))
        let server = try echo(bank.server("bank.test"))
        let network = try Network(security: .tls(authority: attacker.root, host: "bank.test"))
        network.setServerPort(server.port)
        let door = try network.openAttackerHost()
        #expect(door.host == "evil.test")
        let led = RawClient(port: door.port, security: try .unchecked(door.host))
        #expect(try await led.send(order).text == "POST /transfer: to=bob&amount=10")
        #expect(door.interception.requests == 1)
        network.stop()
        await #expect(throws: NetworkError.self) { try await led.send(order) }
    }
}
