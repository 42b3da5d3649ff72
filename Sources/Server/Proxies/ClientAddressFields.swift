import CountersignAuthority
import CountersignGate
import CountersignHTTP
import CountersignWire

/// The fields that tell the backend where a request comes from. Source: docs/protocol.md, "To the upstream";
/// RFC 7239.
///
/// A class, so that a connection can keep the fields of its last request.
final class ClientAddressFields {
    /// The client's address as text; `unknown` if there is none.
    let address: String
    /// Field lines, each with its CRLF.
    let bytes: [UInt8]
    private let host: [UInt8]
    /// All lines of the last request but those that depend on it, its event's last; and its caller.
    private var kept: (release: AppRelease, session: Session?, lines: [UInt8])?

    /// The lines for a request of this exchange, composed once for each connection and host. `request` is the
    /// exchange's own.
    static func lines(
        for exchange: any Exchange, sending request: Request, behind proxies: TrustedProxies
    ) -> ClientAddressFields {
        let host = request.head.span.extracting(request.authority.range)
        if proxies.areNamed, let client = exchange.attachment as? ProxiedClient {
            return ClientAddressFields(
                client: client.address, transport: request.proxiedTransport, host: host)
        }
        // The peer and the transport of a connection stay the same.
        if let kept = exchange.attachment as? ClientAddressFields, kept.areFor(host: host) { return kept }
        let lines = ClientAddressFields(
            client: NetworkAddress(withPort: exchange.peer), transport: request.transport, host: host)
        exchange.attachment = lines
        return lines
    }

    /// `host` is the authority of the request; the gate has compared its bytes with those of this deployment.
    init(client: NetworkAddress?, transport: Request.Transport, host: Span<UInt8>) {
        self.host = host.withUnsafeBufferPointer { Array($0) }
        address = client?.text ?? "unknown"
        let scheme = transport == .tls ? "https" : "http"
        // Source: RFC 7239 §6: an IPv6 address stands in brackets, and these in quotes.
        let node = client?.isIPv6 == true ? "\"[\(address)]\"" : address
        var lines =
            "Countersign-Client: \(address)\r\nX-Forwarded-For: \(address)\r\n"
            + "X-Forwarded-Proto: \(scheme)\r\n"
        var forwarded = "Forwarded: for=\(node);proto=\(scheme)"
        if ClientAddressFields.isHost(host) {
            lines += "X-Forwarded-Host: \(host.text)\r\n"
            forwarded += ";host=\"\(host.text)\""
        }
        bytes = Array("\(lines)\(forwarded)\r\n".utf8)
    }

    /// Whether the lines of the last request are those of this caller's, too.
    func keepsLines(of caller: Caller) -> Bool {
        kept?.release === caller.release && kept?.session === caller.session
    }

    /// Keeps lines that end with the one of an event.
    func keep(_ lines: [UInt8], of caller: Caller) { kept = (caller.release, caller.session, lines) }

    /// The kept lines, with this event in place of the one before. Written in place, unless an earlier
    /// request still has the lines.
    func lines(for event: EventID) -> [UInt8] {
        kept?.lines.withUnsafeMutableBytes { lines in
            event.write(to: UnsafeMutableRawBufferPointer(rebasing: lines.suffix(38).prefix(36)))
        }
        return kept?.lines ?? []
    }

    private func areFor(host other: Span<UInt8>) -> Bool {
        let host = self.host
        return other.matches(host.span)
    }

    /// Whether the text can stand in quotes unchanged: a name or an address, and a port.
    private static func isHost(_ host: Span<UInt8>) -> Bool {
        for index in 0..<host.count {
            switch host[index] {
            case UInt8(ascii: "-"), UInt8(ascii: "."), UInt8(ascii: "_"), UInt8(ascii: ":"),
                UInt8(ascii: "["),
                UInt8(ascii: "]"):
                continue
            case let byte where ASCII.isLetter(byte) || ASCII.isDigit(byte): continue
            default: return false
            }
        }
        return host.count > 0
    }
}

extension ClientAddress {
    /// All unknown addresses count as one party.
    init(_ address: NetworkAddress?) { self = address.flatMap { ClientAddress($0.bytes.span) } ?? .unknown }
}

extension NetworkAddress {
    /// An address as the engine writes it: `192.0.2.1:50000`, `[2001:db8::1]:50000`; or without a port.
    init?(withPort text: String) { self.init(withPort: Array(text.utf8).span) }

    /// As ``init(withPort:)``, from bytes, with optional spaces and tabs around it, as proxies write it. A
    /// link-local address may have a zone, which does not identify the party.
    init?(withPort text: Span<UInt8>) {
        var (start, end) = (0, text.count)
        while start < end, NetworkAddress.isBlank(text[start]) { start += 1 }
        while start < end, NetworkAddress.isBlank(text[end - 1]) { end -= 1 }
        guard start < end else { return nil }
        var colons = 0
        for index in start..<end where text[index] == UInt8(ascii: ":") { colons += 1 }
        let isInBrackets = text[start] == UInt8(ascii: "[")
        if isInBrackets || colons == 1 {
            var mark = end - 1
            while mark > start, ASCII.isDigit(text[mark]) { mark -= 1 }
            if text[mark] == UInt8(ascii: ":") { end = mark }
        }
        if isInBrackets {
            guard text[end - 1] == UInt8(ascii: "]") else { return nil }
            (start, end) = (start + 1, end - 1)
        }
        guard start < end else { return nil }
        for index in start..<end where text[index] == UInt8(ascii: "%") {
            end = index
            break
        }
        self.init(text: text.extracting(start..<end))
    }

    private static func isBlank(_ byte: UInt8) -> Bool {
        byte == UInt8(ascii: " ") || byte == UInt8(ascii: "\t")
    }
}
