// The PROXY protocol: what a trusted proxy says of a client is read in one way, to the byte, and bounded.
import CountersignWire
import Testing

@testable import CountersignHTTP

@Suite struct ProxyHeaderTests {
    private static let signature: [UInt8] = [
        0x0D, 0x0A, 0x0D, 0x0A, 0x00, 0x0D, 0x0A, 0x51, 0x55, 0x49, 0x54, 0x0A,
    ]

    private static func binary(_ command: UInt8, family: UInt8, body: [UInt8], length: Int? = nil) -> [UInt8]
    {
        let length = length ?? body.count
        return signature + [command, family, UInt8(length >> 8), UInt8(length & 0xFF)] + body
    }

    /// The header and the bytes that were taken, fed `step` bytes at a time; nil where more are needed.
    private func read(_ bytes: [UInt8], step: Int) throws -> (header: ProxyHeader, count: Int)? {
        var reader = ProxyHeaderReader()
        var position = 0
        while position < bytes.count {
            let end = min(position + step, bytes.count)
            let taken = try reader.take(bytes.span.extracting(position..<end))
            position += taken.count
            if let header = taken.header { return (header, position) }
            #expect(position == end)
        }
        return nil
    }

    private static let tcp4: [UInt8] = [192, 0, 2, 1, 198, 51, 100, 2, 0xC3, 0x50, 0x01, 0xBB]
    private static let tcp6: [UInt8] =
        [0x20, 0x01, 0x0D, 0xB8, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1] + [UInt8](repeating: 0, count: 16) + [
            1, 2, 3, 4,
        ]

    static let good: [(bytes: [UInt8], client: String?, port: UInt16)] = [
        (Array("PROXY TCP4 192.0.2.1 198.51.100.2 50000 443\r\n".utf8), "192.0.2.1", 50_000),
        (Array("PROXY TCP6 2001:db8::1 ::1 0 65535\r\n".utf8), "2001:db8::1", 0),
        (Array("PROXY TCP6 ::ffff:192.0.2.1 ::1 1 2\r\n".utf8), "192.0.2.1", 1),
        (Array("PROXY UNKNOWN\r\n".utf8), nil, 0),
        (Array("PROXY UNKNOWN ffff:f...f:ffff ffff:f...f:ffff 65535 65535\r\n".utf8), nil, 0),
        (binary(0x21, family: 0x11, body: tcp4), "192.0.2.1", 50_000),
        (binary(0x21, family: 0x21, body: tcp6), "2001:db8::1", 0x0102),
        (binary(0x21, family: 0x11, body: tcp4 + [0x04, 0, 0, 0x20, 0, 2, 9, 9]), "192.0.2.1", 50_000),
        (
            binary(0x21, family: 0x11, body: tcp4 + [0x04, 0x07, 0] + [UInt8](repeating: 0, count: 0x700)),
            "192.0.2.1", 50_000
        ),
        (binary(0x20, family: 0x00, body: []), nil, 0),
        (binary(0x20, family: 0x11, body: tcp4), nil, 0),
        (binary(0x20, family: 0xFF, body: [1, 2, 3]), nil, 0),
        (binary(0x21, family: 0x00, body: []), nil, 0),
        (binary(0x21, family: 0x00, body: [1]), nil, 0),
    ]

    @Test(arguments: good.indices, [1, 5, 10_000])
    func readsAHeaderAndNoByteMore(index: Int, step: Int) throws {
        let (bytes, client, port) = ProxyHeaderTests.good[index]
        let found = try #require(try read(bytes + Array("GET / HTTP/1.1".utf8), step: step))
        #expect(found.header.client?.text == client)
        #expect(found.header.port == port)
        #expect(found.count == bytes.count)
        #expect(try read(Array(bytes.dropLast()), step: step) == nil)
    }

    static let bad: [[UInt8]] =
        [
            "GET / HTTP/1.1\r\n", "PROXI", "proxy TCP4 192.0.2.1 192.0.2.2 1 2\r\n",
            "PROXY  TCP4 192.0.2.1 192.0.2.2 1 2\r\n", "PROXY TCP4 192.0.2.1 192.0.2.2 1 2\n",
            "PROXY TCP4 192.0.2.1 192.0.2.2 1 23\n", "PROXY TCP4 192.0.2.1 192.0.2.2 1 2\rX",
            "PROXY TCP4 192.0.2.1 192.0.2.2 1 2 \r\n", "PROXY TCP4 192.0.2.1 192.0.2.2 1\r\n",
            "PROXY TCP4 192.0.2.1 192.0.2.2 1 2 3\r\n", "PROXY TCP4 2001:db8::1 ::1 1 2\r\n",
            "PROXY TCP6 192.0.2.1 192.0.2.2 1 2\r\n", "PROXY TCP4 192.0.2.256 192.0.2.2 1 2\r\n",
            "PROXY TCP4 192.0.2.01 192.0.2.2 1 2\r\n", "PROXY TCP4 192.0.2.1\u{0} 192.0.2.2 1 2\r\n",
            "PROXY TCP4 192.0.2.1 192.0.2.2 65536 2\r\n", "PROXY TCP4 192.0.2.1 192.0.2.2 01 2\r\n",
            "PROXY TCP4 192.0.2.1 192.0.2.2 -1 2\r\n", "PROXY TCP4 192.0.2.1 192.0.2.2 +1 2\r\n",
            "PROXY TCP4 192.0.2.1 192.0.2.2  2\r\n", "PROXY UDP4 192.0.2.1 192.0.2.2 1 2\r\n",
            "PROXY UNKNOWNX\r\n", "PROXY \r\n", "PROXY UNKNOWN " + String(repeating: "a", count: 120),
            "\r\n\r\nGET",
        ].map { Array($0.utf8) } + [
            binary(0x11, family: 0x11, body: tcp4),
            binary(0x22, family: 0x11, body: tcp4),
            binary(0x31, family: 0x11, body: tcp4),
            binary(0x21, family: 0x12, body: tcp4),
            binary(0x21, family: 0x31, body: [UInt8](repeating: 0, count: 216)),
            binary(0x21, family: 0x11, body: Array(tcp4.dropLast())),
            binary(0x21, family: 0x21, body: Array(tcp6.dropLast())),
            binary(0x21, family: 0x11, body: tcp4 + [4]),
            binary(0x21, family: 0x11, body: tcp4 + [4, 0]),
            binary(0x21, family: 0x11, body: tcp4 + [4, 0, 1]),
            binary(0x21, family: 0x11, body: tcp4 + [4, 0xFF, 0xFF, 0]),
            binary(0x21, family: 0x11, body: tcp4, length: 2_049),
            binary(0x20, family: 0x00, body: [], length: 65_535),
        ]

    @Test(arguments: bad.indices, [1, 10_000])
    func refuses(index: Int, step: Int) {
        #expect { _ = try read(ProxyHeaderTests.bad[index], step: step) } throws: {
            ($0 as? Refusal)?.code == .malformed
        }
    }
}
