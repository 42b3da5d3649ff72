import CountersignTestServer
import Glibc
import Testing

@testable import CountersignLab

@Suite struct TsharkTests {
    /// Both sides from their SYN on; out of order, repeated, with a gap; another connection in between; an
    /// incomplete line.
    @Test func segmentsAreOneStream() {
        let packets = TsharkPackets(
            lines: """
                0\t50000\t80\t4294967294\t1\t
                0\t80\t50000\t7\t1\t
                0\t50000\t80\t4294967295\t0\t616263
                1\t50001\t80\t100\t0\t7879
                0\t50000\t80\t5\t0\t6768
                0\t50000\t80\t2\t0\t64
                0\t50000\t80\t2\t0\t646566
                0\t50000\t80\t2\t0\t646566
                0\t50000\t80\t9\t0\t21
                2\t50002\t81\t1\t0\t7a
                0\t80\t50000\t8\t0\t4f4b
                0\t80\t50000\t10\t0\t4f
                """)
        #expect(
            packets.connections(with: 80) == [
                RecordedConnection(client: Array("abcdefgh".utf8), server: Array("OK".utf8)),
                RecordedConnection(client: Array("xy".utf8)),
            ])
    }

    /// Where the machine permits capturing: tshark reads from the interface exactly the bytes that the relay
    /// forwarded.
    @Test(.enabled(if: access("/usr/bin/tshark", X_OK) == 0 && geteuid() == 0))
    func tsharkHearsWhatTheRelayHears() async throws {
        let bank = try Authority("bank's")
        let server = try echo(bank.server("bank.test"))
        let network = try Network(security: .tls(authority: bank.root, host: "bank.test"))
        network.setServerPort(server.port)
        let own = network.listen()
        let theirs = try await network.listen(by: .tshark)
        for size in [10, 100_000] {
            let order = RawRequest(
                method: "POST", target: "/\(size)", body: Array(repeating: UInt8(ascii: "x"), count: size))
            #expect(try await victim(of: network, order).status == 200)
        }
        let heard = theirs.stop().connections
        #expect(heard.count == 2)
        #expect(heard == own.stop().connections)
        #expect(Recording(heard).exchanges.isEmpty)
    }

    @Test func whatFollowsAGapIsNotSaid() {
        let packets = TsharkPackets(lines: "0\t5\t80\t1\t0\t61\n0\t5\t80\t3\t0\t62\n")
        #expect(packets.connections(with: 80) == [RecordedConnection(client: Array("a".utf8))])
    }
}

extension TsharkPackets {
    fileprivate init(lines: String) { self.init(Array(lines.utf8)) }
}
