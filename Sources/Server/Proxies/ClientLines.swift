import CountersignHTTP
import CountersignWire

/// What the backend is told about where a request comes from. Source: docs/protocol.md, "To the upstream"; RFC 7239.
struct ClientLines: Sendable {
    /// The client's address as text; `unknown` where it has none.
    let address: String
    /// Field lines, each with its CRLF.
    let bytes: [UInt8]

    /// `host` is the authority that was called, whose bytes the gate has compared with those of this deployment.
    init(client: NetworkAddress?, transport: Request.Transport, host: Span<UInt8>) {
        address = client?.text ?? "unknown"
        let scheme = transport == .tls ? "https" : "http"
        // Source: RFC 7239 §6: an IPv6 address stands in brackets, and these in quotes.
        let node = client?.isIPv6 == true ? "\"[\(address)]\"" : address
        var lines = "Countersign-Client: \(address)\r\nX-Forwarded-For: \(address)\r\nX-Forwarded-Proto: \(scheme)\r\n"
        var forwarded = "Forwarded: for=\(node);proto=\(scheme)"
        if ClientLines.isHost(host) {
            lines += "X-Forwarded-Host: \(host.text)\r\n"
            forwarded += ";host=\"\(host.text)\""
        }
        bytes = Array("\(lines)\(forwarded)\r\n".utf8)
    }

    /// Whether it may be written between quotes as it is: a name or an address, and a port.
    private static func isHost(_ host: Span<UInt8>) -> Bool {
        for index in 0..<host.count {
            switch host[index] {
            case UInt8(ascii: "-"), UInt8(ascii: "."), UInt8(ascii: "_"), UInt8(ascii: ":"), UInt8(ascii: "["),
                UInt8(ascii: "]"):
                continue
            case let byte where ASCII.isLetter(byte) || ASCII.isDigit(byte): continue
            default: return false
            }
        }
        return host.count > 0
    }
}

/// The lines of the last connections, so that they are composed once for each. Confined to one loop.
struct ClientLineCache {
    /// An object, so that finding it copies nothing.
    private final class Entry {
        let peer: String
        let transport: Request.Transport
        let host: [UInt8]
        let lines: ClientLines

        init(peer: String, transport: Request.Transport, host: [UInt8], lines: ClientLines) {
            (self.peer, self.transport, self.host, self.lines) = (peer, transport, host, lines)
        }

        func isOf(_ peer: String, _ transport: Request.Transport, calling host: Span<UInt8>) -> Bool {
            guard self.peer == peer, self.transport == transport else { return false }
            let own = self.host
            return host.matches(own.span)
        }
    }

    private static let slots = 512
    private var entries = [Entry?](repeating: nil, count: slots)
    private let proxies: TrustedProxies

    init(_ proxies: TrustedProxies) { self.proxies = proxies }

    /// `request` is the exchange's own.
    mutating func lines(for exchange: any Exchange, sending request: Request) -> ClientLines {
        let host = request.head.span.extracting(request.authority.range)
        let peer = exchange.peer
        if proxies.areNamed, proxies.isTrusted(peer: peer) {
            return ClientLines(
                client: proxies.client(of: request, from: peer), transport: proxies.transport(of: request),
                host: host)
        }
        // A connection stays where it is in memory, and another one there is told by its peer.
        let place = Int(bitPattern: ObjectIdentifier(exchange)) >> 4 & (ClientLineCache.slots - 1)
        if let entry = entries[place], entry.isOf(peer, request.transport, calling: host) { return entry.lines }
        let lines = ClientLines(client: NetworkAddress(withPort: peer), transport: request.transport, host: host)
        entries[place] = Entry(
            peer: peer, transport: request.transport, host: host.withUnsafeBufferPointer { Array($0) }, lines: lines)
        return lines
    }
}
