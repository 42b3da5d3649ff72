import CountersignHTTP
import CountersignWire

/// Proxies in front whose word about a client's address is taken: what limits count by and a share of devices goes by is else the
/// proxy's own address, the same for everybody. What a client writes into the field itself stands to the left of what
/// they add, and is never reached.
struct TrustedProxies: Sendable {
    /// Of more hops, or of a longer text, nothing is believed.
    private static let mostHops = 16
    private static let mostBytes = 1_024

    private let ranges: [AddressRange]

    init(_ ranges: [AddressRange] = []) { self.ranges = ranges }

    /// Whether there is any; without one nothing has to be looked at.
    var areNamed: Bool { !ranges.isEmpty }

    /// What a trusted proxy says of the client of `request`, over a connection from `peer`; nil where `peer`
    /// is none of them.
    func client(of request: borrowing Request, from peer: String) -> ProxiedClient? {
        guard !ranges.isEmpty, let proxy = NetworkAddress(withPort: peer), isOne(proxy) else { return nil }
        return ProxiedClient(address: client(of: request, from: proxy), proxy: proxy)
    }

    /// Where the client calls from: the last hop that is no trusted proxy, or the first of all. Without the
    /// field it is the proxy itself. Nil if a hop that decides is not an address: the client is then unknown,
    /// and never a proxy.
    ///
    /// Each proxy adds to the right of `X-Forwarded-For` whom it had the request from; so the bytes are read
    /// from the right, and split at the comma, whatever else a client wrote before it. Source: RFC 9110 §5.3.
    private func client(of request: borrowing Request, from proxy: NetworkAddress) -> NetworkAddress? {
        var client = proxy
        var (hops, bytes) = (0, 0)
        for index in request.fields.indices.reversed() {
            let field = request.fields[index]
            guard field.known == .other, request.matches(field.name, "x-forwarded-for") else { continue }
            let text = request.head.span.extracting(field.value.range)
            var end = text.count
            while end >= 0 {
                var start = end
                while start > 0, text[start - 1] != UInt8(ascii: ",") {
                    start -= 1
                    bytes += 1
                    guard bytes <= TrustedProxies.mostBytes else { return nil }
                }
                hops += 1
                guard hops <= TrustedProxies.mostHops,
                    let address = NetworkAddress(withPort: text.extracting(start..<end))
                else { return nil }
                guard isOne(address) else { return address }
                client = address
                end = start - 1
            }
        }
        return client
    }

    /// Whether `peer` is one of them.
    func isTrusted(peer: String) -> Bool {
        guard !ranges.isEmpty, let address = NetworkAddress(withPort: peer) else { return false }
        return isOne(address)
    }

    private func isOne(_ address: NetworkAddress) -> Bool { ranges.contains { $0.contains(address) } }
}

/// The client of one request as a trusted proxy names it, kept with the connection until its next request.
final class ProxiedClient {
    /// Nil where what the proxy wrote cannot be read.
    let address: NetworkAddress?
    private let proxy: NetworkAddress

    init(address: NetworkAddress?, proxy: NetworkAddress) { (self.address, self.proxy) = (address, proxy) }

    /// For the log; nil where the proxy calls for itself.
    var text: String? { address == proxy ? nil : address?.text ?? "unknown" }
}
