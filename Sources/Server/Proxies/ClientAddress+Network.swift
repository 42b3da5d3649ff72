import CountersignAuthority
import CountersignHTTP
import CountersignWire

extension ClientAddress {
    /// What cannot be told counts as one party.
    init(_ address: NetworkAddress?) { self = address.flatMap { ClientAddress($0.bytes.span) } ?? .unknown }
}

extension NetworkAddress {
    /// An address as the engine writes it: `192.0.2.1:50000`, `[2001:db8::1]:50000`; or without a port.
    init?(withPort text: String) { self.init(withPort: Array(text.utf8).span) }

    /// The same from bytes, with spaces and tabs around it, as proxies write it. A link-local address may
    /// bear its interface, which says nothing about whose it is.
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

    private static func isBlank(_ byte: UInt8) -> Bool { byte == UInt8(ascii: " ") || byte == UInt8(ascii: "\t") }
}
