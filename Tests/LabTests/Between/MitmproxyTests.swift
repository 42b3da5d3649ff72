import CountersignTestKit
import Foundation
import Testing

@testable import CountersignLab

/// Where script/setup puts it.
private let mitmdump = URL(filePath: #filePath).deletingLastPathComponent()
    .appending(path: "../../../.build/mitmproxy/bin/mitmdump").standardizedFileURL.path

@Suite(.enabled(if: FileManager.default.isExecutableFile(atPath: mitmdump))) struct MitmproxyTests {
    private let order = RawRequest(
        "POST", "/transfer?a=%2f", fields: [("Host", "bank.test"), ("X-Odd", "a")], body: Array("to=bob".utf8))

    /// All of it in one test: mitmproxy takes its time to start.
    @Test func itReadsAndChangesAndIsRefused() async throws {
        let (bank, attacker) = (try Authority("bank's"), try Authority("attacker's"))
        let server = try echo(bank.server("bank.test"))
        let network = try Network(security: .tls(authority: attacker.root, host: "bank.test"))
        network.lead(to: server.port)
        try await network.interpose(by: .mitmproxy(mitmdump)) { request, forward in
            guard request.method == "POST" else { return nil }
            var changed = request
            changed.body = Array("to=thief&amount=1".utf8)
            guard var response = try? forward(changed), let again = try? forward(request) else { return nil }
            response.body += Array(" | ".utf8) + again.body
            return response
        }
        let answer = try await victim(of: network, order)
        #expect(answer.text == "POST /transfer?a=%2f: to=thief&amount=1 | POST /transfer?a=%2f: to=bob")
        await #expect(throws: NetworkProblem.self) { try await victim(of: network, RawRequest("GET", "/")) }
        await #expect(throws: NetworkProblem.self) { try await distrustful(network.publicPort).send(order) }
        let seen = network.interposed
        #expect((seen.connections, seen.handshakes) == (3, 2))
        #expect(seen.exchanges.map(\.request.method) == ["POST", "GET"])
        #expect(seen.exchanges.first?.request.fields["x-odd"] == "a")
        #expect(seen.brokenOff.count == 1)
        #expect(seen.brokenOff.first?.contains("does not trust") ?? false, "\(seen.brokenOff)")

        network.beHonest()
        #expect(try await victim(of: network, order).text == "POST /transfer?a=%2f: to=bob")
    }

    @Test func whatIsNotThereIsAFault() async throws {
        let network = try Network(security: .plain)
        network.lead(to: 1)
        await #expect(throws: StageFault.self) {
            try await network.interpose(by: .mitmproxy("/nowhere/mitmdump")) { try? $1($0) }
        }
    }
}
