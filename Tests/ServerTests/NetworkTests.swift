import CountersignAuthority
import CountersignHTTP
import CountersignWire
import Testing

@testable import CountersignServer

/// The network of a client, from the engine's text of its address: without the port, and for IPv6 the first
/// half.
@Suite struct NetworkTests {
    @Test(arguments: [
        ("192.0.2.7:50000", [192, 0, 2, 7] as [UInt8]), ("192.0.2.7:1", [192, 0, 2, 7]),
        ("[2001:db8:1:2::9]:443", [0x20, 1, 0x0D, 0xB8, 0, 1, 0, 2]),
        ("[2001:db8:1:2:ffff::1]:443", [0x20, 1, 0x0D, 0xB8, 0, 1, 0, 2]), ("unknown", []),
    ])
    func network(_ peer: String, _ bytes: [UInt8]) {
        #expect((NetworkAddress(withPort: peer).map { ClientAddress($0).bytes } ?? []) == bytes)
    }

    @Test(
        "a trusted proxy's word is taken, and nobody else's",
        arguments: [
            ("192.0.2.7:1", [], nil), ("192.0.2.7:1", ["203.0.113.1"], nil), ("10.0.0.1:1", [], "10.0.0.1"),
            ("10.0.0.1:1", ["203.0.113.1"], "203.0.113.1"),
            ("10.0.0.1:1", ["198.51.100.9, 203.0.113.1"], "203.0.113.1"),
            ("10.0.0.1:1", ["198.51.100.9", " 203.0.113.1 ,10.2.3.4"], "203.0.113.1"),
            ("10.0.0.1:1", ["203.0.113.1, nonsense"], "unknown"), ("10.0.0.1:1", ["203.0.113.1,"], "unknown"),
            ("10.0.0.1:1", ["203.0.113.1, nonsense, 10.9.9.9"], "unknown"), ("10.0.0.1:1", [""], "unknown"),
            ("10.0.0.1:1", ["10.9.9.9\u{600}, 203.0.113.1"], "203.0.113.1"),
            ("10.0.0.1:1", ["\(String(repeating: ",", count: 5_000)), 203.0.113.1"], "203.0.113.1"),
            ("10.0.0.1:1", ["203.0.113.1, \(String(repeating: "1", count: 2_000))"], "unknown"),
            ("10.0.0.1:1", ["x, 203.0.113.5\u{301}"], "unknown"),
            ("10.0.0.1:1", ["203.0.113.5, unix:"], "unknown"),
            ("10.0.0.1:1", ["\u{110BD}, 203.0.113.1"], "203.0.113.1"),
            ("10.0.0.1:1", ["203.0.113.1 x"], "unknown"), ("10.0.0.1:1", ["203.0.113.1:80:80"], "unknown"),
            ("10.0.0.1:1", ["[2001:db8::9"], "unknown"), ("10.0.0.1:1", ["[2001:db8::9]"], "2001:db8::9"),
            ("10.0.0.1:1", ["fe80::1%eth0"], "fe80::1"), ("10.0.0.1:1", ["10.0.0.2, 10.0.0.3"], "10.0.0.2"),
            ("10.0.0.1:1", ["203.0.113.1:4711"], "203.0.113.1"),
            ("[::ffff:10.0.0.1]:1", ["[2001:db8::9]:443"], "2001:db8::9"),
            ("[fd00::1]:1", ["2001:db8::9"], "2001:db8::9"), ("[2001:db8::1]:1", ["2001:db8::9"], nil),
        ] as [(String, [String], String?)])
    func proxies(_ row: (peer: String, fields: [String], client: String?)) throws {
        let ranges = try ["10.0.0.0/8", "fd00::/16"].map { try #require(AddressRange($0)) }
        var draft = Draft(method: "GET", target: Array("/".utf8), authority: "example.com")
        draft.fields = row.fields.map { Draft.Field(name: "x-forwarded-for", value: $0) }
        let client = TrustedProxies(ranges).client(of: draft.request(), from: row.peer)
        #expect(client.map { $0.address?.text ?? "unknown" } == row.client)
        let isProxy = row.client.map { row.peer.contains($0) } ?? true
        #expect(client?.text == (isProxy ? nil : row.client))
        #expect(TrustedProxies().client(of: draft.request(), from: row.peer) == nil)
    }

    @Test("of more hops than are looked at nobody is the client")
    func hops() throws {
        let range = try #require(AddressRange("10.0.0.0/8"))
        var draft = Draft(method: "GET", target: Array("/".utf8), authority: "example.com")
        for (count, client) in [(15, "203.0.113.1"), (16, "unknown")] {
            let chain = ["203.0.113.1"] + (1...count).map { "10.0.0.\($0)" }
            draft.fields = [Draft.Field(name: "x-forwarded-for", value: chain.joined(separator: ","))]
            #expect(TrustedProxies([range]).client(of: draft.request(), from: "10.0.0.1:1")?.text == client)
        }
    }

    @Test(
        "which addresses a range has",
        arguments: [
            ("10.0.0.0/8", "10.255.0.1", true), ("10.0.0.0/8", "11.0.0.0", false),
            ("0.0.0.0/0", "203.0.113.1", true), ("0.0.0.0/0", "2001:db8::1", false),
            ("192.0.2.1", "192.0.2.1", true), ("192.0.2.1", "192.0.2.0", false),
            ("::/0", "2001:db8::1", true), ("::/0", "192.0.2.1", false),
            ("2001:db8::/33", "2001:db8:7fff::1", true), ("2001:db8::/33", "2001:db8:8000::1", false),
            ("2001:db8::/64", "2001:db8::ffff:0:0:1", true), ("2001:db8::/65", "2001:db8::8000:0:0:1", false),
            ("2001:db8::1", "2001:db8::1", true), ("2001:db8::1/128", "2001:db8::2", false),
            ("10.0.0.0/8", "::ffff:10.0.0.1", true),
        ])
    func ranges(_ row: (range: String, address: String, isIn: Bool)) throws {
        let address = try #require(NetworkAddress(text: row.address))
        #expect(AddressRange(row.range)?.contains(address) == row.isIn)
    }

    @Test(
        "ranges",
        arguments: [
            "10.0.0.1/8", "10.0.0.0/33", "10.0.0.0/", "10.0.0.0/8/8", "fd00::/129", "host", "", "10.0.0.0/+8",
        ])
    func noRanges(_ text: String) { #expect(AddressRange(text) == nil) }
}
