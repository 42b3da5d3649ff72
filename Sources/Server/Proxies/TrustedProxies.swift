import CountersignHTTP
import CountersignWire

/// Proxies in front whose word about a client's address is taken: what limits count by and a share of devices goes by is else the
/// proxy's own address, the same for everybody. What a client writes into the field itself stands to the left of what
/// they add, and is never reached.
struct TrustedProxies: Sendable {
    /// Beyond this many hops nothing is believed.
    private static let mostHops = 16

    private let ranges: [AddressRange]

    init(_ ranges: [AddressRange] = []) { self.ranges = ranges }

    /// Whether there is any; without one nothing has to be looked at.
    var areNamed: Bool { !ranges.isEmpty }

    /// Where the client of `request` calls from, over a connection from `peer`: as the last of them says that is not one of them
    /// itself. What is no address ends the search, and the hop that said it counts. Nil where `peer` is no address.
    /// Each hop adds to the right of `X-Forwarded-For` whom it had the request from.
    func client(of request: Request, from peer: String) -> NetworkAddress? {
        guard var client = NetworkAddress(withPort: peer) else { return nil }
        guard !ranges.isEmpty, isOne(client) else { return client }
        for hop in hops(of: request).suffix(TrustedProxies.mostHops).reversed() {
            guard let address = NetworkAddress(withPort: hop) else { break }
            client = address
            guard isOne(address) else { break }
        }
        return client
    }

    /// Whether `peer` is one of them.
    func isTrusted(peer: String) -> Bool {
        guard !ranges.isEmpty, let address = NetworkAddress(withPort: peer) else { return false }
        return isOne(address)
    }

    /// How the client reached the proxies, by the `X-Forwarded-Proto` of a trusted one; else how the proxy reached us.
    func transport(of request: Request) -> Request.Transport {
        guard let value = request.value(of: "x-forwarded-proto") else { return request.transport }
        let text = request.head.span.extracting(value.range)
        if text.matchesWithoutCase("https") { return .tls }
        return text.matchesWithoutCase("http") ? .plain : request.transport
    }

    /// The client that a trusted proxy names; nil where `peer` is not a trusted proxy.
    func claimed(by request: Request, from peer: String) -> NetworkAddress? {
        isTrusted(peer: peer) ? client(of: request, from: peer) : nil
    }

    /// The client, as text, where it is another than `peer`; for the log.
    func named(in request: Request, by peer: String) -> String? {
        guard !ranges.isEmpty, let client = client(of: request, from: peer), client != NetworkAddress(withPort: peer)
        else { return nil }
        return client.text
    }

    private func isOne(_ address: NetworkAddress) -> Bool { ranges.contains { $0.contains(address) } }

    /// The field's members, its lines in their order. Source: RFC 9110 §5.3.
    private func hops(of request: Request) -> [Substring] {
        var hops: [Substring] = []
        for field in request.fields where request.matches(field.name, "x-forwarded-for") {
            for part in request.text(field.value).split(separator: ",", omittingEmptySubsequences: false) {
                hops.append(part.drop { $0 == " " || $0 == "\t" }.prefix { $0 != " " && $0 != "\t" })
            }
        }
        return hops
    }
}
