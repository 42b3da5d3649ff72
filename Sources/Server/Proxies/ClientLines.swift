import CountersignHTTP
import CountersignWire

/// What the backend is told about where a request comes from. Source: docs/protocol.md, "To the upstream"; RFC 7239.
///
/// A class, so that a connection can keep those of its last request.
final class ClientLines {
    /// The client's address as text; `unknown` where it has none.
    let address: String
    /// Field lines, each with its CRLF.
    let bytes: [UInt8]
    private let host: [UInt8]

    /// The lines for a request of this exchange, composed once for each connection and host. `request` is the
    /// exchange's own.
    static func lines(
        for exchange: any Exchange, sending request: Request, behind proxies: TrustedProxies
    ) -> ClientLines {
        let host = request.head.span.extracting(request.authority.range)
        if proxies.areNamed, let client = exchange.attachment as? ProxiedClient {
            return ClientLines(client: client.address, transport: request.proxiedTransport, host: host)
        }
        // The peer and the transport of a connection stay the same.
        if let kept = exchange.attachment as? ClientLines, kept.areFor(host: host) { return kept }
        let lines = ClientLines(
            client: NetworkAddress(withPort: exchange.peer), transport: request.transport, host: host)
        exchange.attachment = lines
        return lines
    }

    /// `host` is the authority that was called, whose bytes the gate has compared with those of this deployment.
    init(client: NetworkAddress?, transport: Request.Transport, host: Span<UInt8>) {
        self.host = host.withUnsafeBufferPointer { Array($0) }
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

    private func areFor(host other: Span<UInt8>) -> Bool {
        let host = self.host
        return other.matches(host.span)
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
