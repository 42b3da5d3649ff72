import CountersignAuthority
import Testing

@testable import CountersignServer

/// Where a client calls from, by the engine's text of it: its port says nothing, and of IPv6 half the address.
@Suite struct NetworkTests {
    @Test(arguments: [
        ("192.0.2.7:50000", [192, 0, 2, 7] as [UInt8]), ("192.0.2.7:1", [192, 0, 2, 7]),
        ("[2001:db8:1:2::9]:443", [0x20, 1, 0x0D, 0xB8, 0, 1, 0, 2]),
        ("[2001:db8:1:2:ffff::1]:443", [0x20, 1, 0x0D, 0xB8, 0, 1, 0, 2]), ("unknown", []),
    ])
    func network(_ peer: String, _ bytes: [UInt8]) { #expect((ClientAddress(peer: peer)?.bytes ?? []) == bytes) }
}
