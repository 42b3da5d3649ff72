import CountersignTestServer
import CountersignTrust
import Glibc
import Testing
import Waiting

/// The test server counts every byte that it receives; if it missed some, tests that expect nothing to be
/// sent would pass wrongly.
@Suite(.timeLimit(.minutes(15)))
struct TestServerTests {
    /// Application data without a handshake, in two records: OpenSSL fails at the first, and the second
    /// follows.
    @Test func countsWhatComesInAHandshakeThatFails() async throws {
        var request = CertificateRequest("Alone", hosts: ["api.example.com"], at: 1_700_000_000)
        request.key = .p256
        let server = try TestServer(.tls(TestServer.Credentials([IssuedCertificate.selfSigned(request)]))) {
            _ in
        }
        defer { server.stop() }
        let client = try Self.connect(server.port)
        let record: [UInt8] = [23, 3, 3, 0, 5] + Array("hello".utf8)
        #expect(send(client, record + record, 2 * record.count, 0) == 2 * record.count)
        shutdown(client, Int32(SHUT_WR))
        await until("the end of the connection") { server.tally.closed > 0 }
        close(client)
        #expect(server.tally.records == [23: 2] && server.tally.handshakes == 0 && server.tally.received == 0)
    }

    private static func connect(_ port: UInt16) throws -> Int32 {
        let client = socket(AF_INET, Int32(SOCK_STREAM.rawValue), 0)
        var address = sockaddr_in()
        address.sin_family = sa_family_t(AF_INET)
        address.sin_addr.s_addr = UInt32(0x7F00_0001).bigEndian
        address.sin_port = port.bigEndian
        let status = withUnsafePointer(to: &address) { address in
            address.withMemoryRebound(to: sockaddr.self, capacity: 1) {
                Glibc.connect(client, $0, socklen_t(MemoryLayout<sockaddr_in>.size))
            }
        }
        try #require(status == 0)
        return client
    }
}
