import CountersignAuthority
import CountersignHTTP
import Glibc

extension ClientAddress {
    /// From the engine's text of a peer: `192.0.2.1:50000` or `[2001:db8::1]:50000`. Nil for anything else.
    init?(peer: String) {
        guard let colon = peer.lastIndex(of: ":") else { return nil }
        var host = peer[..<colon]
        if host.hasPrefix("["), host.hasSuffix("]") { host = host.dropFirst().dropLast() }
        // A link-local address bears its interface, which says nothing about who it is.
        let text = String(host.prefix { $0 != "%" })
        var bytes = [UInt8](repeating: 0, count: 16)
        if inet_pton(AF_INET, text, &bytes) == 1 {
            self.init(bytes.span.extracting(0..<4))
        } else if inet_pton(AF_INET6, text, &bytes) == 1 {
            self.init(bytes.span)
        } else {
            return nil
        }
    }
}

extension Exchange {
    /// Where the client calls from: four bytes or eight, and none where that cannot be told.
    func network() -> [UInt8] { ClientAddress(peer: peer)?.bytes ?? [] }
}
