import CountersignHTTP
import CountersignWire

/// The proxies in front whose statement of a client's address the gateway trusts. Without them, the address
/// by which limits and shares of devices count is the proxy's own, the same for every client. What a client
/// itself writes into the field stands to the left of the proxies' entries, and is never reached.
struct TrustedProxies: Sendable {
    /// If there are more hops, or the text is longer, the gateway trusts nothing of it.
    private static let mostHops = 16
    private static let mostBytes = 1_024

    private let ranges: [AddressRange]

    init(_ ranges: [AddressRange] = []) { self.ranges = ranges }

    /// Whether the settings name any proxy; without one, no field has to be read.
    var areNamed: Bool { !ranges.isEmpty }

    /// What a trusted proxy says about the client of `request`, over a connection from `peer`; nil if `peer`
    /// is not a trusted proxy.
    func client(of request: borrowing Request, from peer: String) -> ProxiedClient? {
        guard !ranges.isEmpty, let proxy = NetworkAddress(withPort: peer), isOne(proxy) else { return nil }
        return ProxiedClient(address: client(of: request, from: proxy), proxy: proxy)
    }

    /// The client's address: the last hop that is not a trusted proxy, or the first hop of all. Without the
    /// field it is the proxy itself. Nil if a hop that decides is not an address: the client is then unknown,
    /// and never a proxy.
    ///
    /// Each proxy appends to `X-Forwarded-For` the address from which it received the request; so the bytes
    /// are read from the right, and split at the comma, whatever a client wrote before. Source: RFC 9110
    /// §5.3.
    private func client(of request: borrowing Request, from proxy: NetworkAddress) -> NetworkAddress? {
        var client = proxy
        var (hops, bytes) = (0, 0)
        for index in request.fields.indices.reversed() {
            let field = request.fields[index]
            guard field.known == .other, request.matches(field.name, text: "x-forwarded-for") else {
                continue
            }
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

    /// Whether `peer` is a trusted proxy.
    func isTrusted(peer: String) -> Bool {
        guard !ranges.isEmpty, let address = NetworkAddress(withPort: peer) else { return false }
        return isOne(address)
    }

    private func isOne(_ address: NetworkAddress) -> Bool { ranges.contains { $0.contains(address) } }
}

/// The client of one request as a trusted proxy names it, kept with the connection until its next request.
final class ProxiedClient {
    /// Nil if the proxy's field cannot be parsed.
    let address: NetworkAddress?
    private let proxy: NetworkAddress

    init(address: NetworkAddress?, proxy: NetworkAddress) { (self.address, self.proxy) = (address, proxy) }

    /// For the log; nil if the proxy calls on its own behalf.
    var text: String? { address == proxy ? nil : address?.text ?? "unknown" }
}

/// The addresses that share their first bits: `10.0.0.0/8`. Source: RFC 4632 §3.1.
public struct AddressRange: Sendable, Hashable, CustomStringConvertible {
    private let range: NetworkRange

    /// A single address is a range, too. Nil for any other text, and for a range that has bits set beyond its
    /// length: that is more likely a mistake than intended.
    public init?(_ text: String) {
        guard let range = NetworkRange(text) else { return nil }
        self.range = range
    }

    /// The text that was given.
    public var description: String { range.description }

    func contains(_ address: NetworkAddress) -> Bool { range.contains(address) }
}
