import CountersignTestServer
import Foundation
import Testing

@testable import CountersignLab

/// The path at which script/setup installs it.
private let mitmdump = URL(filePath: #filePath).deletingLastPathComponent()
    .appending(path: "../../../.build/mitmproxy/bin/mitmdump").standardizedFileURL.path

@Suite(.enabled(if: FileManager.default.isExecutableFile(atPath: mitmdump))) struct MitmproxyTests {
    private let order = RawRequest(
        method: "POST", target: "/transfer?a=%2f", fields: [("Host", "bank.test"), ("X-Odd", "a")],
        body: Array("to=bob".utf8))

    /// All in one test, since mitmproxy starts slowly.
    @Test func itReadsAndChangesAndIsRefused() async throws {
        let (bank, attacker) = (try Authority("bank's"), try Authority("attacker's"))
        let server = try echo(bank.server("bank.test"))
        let network = try Network(security: .tls(authority: attacker.root, host: "bank.test"))
        network.setServerPort(server.port)
        try await network.intercept(by: .mitmproxy(mitmdump)) { request, forward in
            guard request.method == "POST" else { return nil }
            var changed = request
            changed.body = Array("to=thief&amount=1".utf8)
            guard var response = try? forward(changed), let again = try? forward(request) else { return nil }
            response.body += Array(" | ".utf8) + again.body
            return response
        }
        let answer = try await victim(of: network, order)
        #expect(answer.text == "POST /transfer?a=%2f: to=thief&amount=1 | POST /transfer?a=%2f: to=bob")
        await #expect(throws: NetworkError.self) {
            try await victim(of: network, RawRequest(method: "GET", target: "/"))
        }
        await #expect(throws: NetworkError.self) { try await distrustful(network.publicPort).send(order) }
        let seen = network.interception
        #expect((seen.connections, seen.handshakes) == (3, 2))
        #expect(seen.exchanges.map(\.request.method) == ["POST", "GET"])
        #expect(seen.exchanges.first?.request.fields["x-odd"] == "a")
        #expect(seen.abortedHandshakes.count == 1)
        #expect(
            seen.abortedHandshakes.first?.contains("does not trust") ?? false, "\(seen.abortedHandshakes)")

        network.stopIntercepting()
        #expect(try await victim(of: network, order).text == "POST /transfer?a=%2f: to=bob")
    }

    @Test func whatIsNotThereIsAFault() async throws {
        let network = try Network(security: .plain)
        network.setServerPort(1)
        await #expect(throws: LabError.self) {
            try await network.intercept(by: .mitmproxy("/nowhere/mitmdump")) { try? $1($0) }
        }
    }
}
