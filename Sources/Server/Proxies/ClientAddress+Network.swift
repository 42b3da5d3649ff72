import CountersignAuthority
import CountersignHTTP

extension ClientAddress {
    /// What cannot be told counts as one party.
    init(_ address: NetworkAddress?) { self = address.flatMap { ClientAddress($0.bytes.span) } ?? .unknown }
}

extension NetworkAddress {
    /// An address as the engine and some proxies write it: `192.0.2.1:50000`, `[2001:db8::1]:50000`; or
    /// without a port. A link-local address may bear its interface, which does not identify the client.
    init?(withPort text: some StringProtocol) {
        let host: Substring
        if text.hasPrefix("["), let end = text.lastIndex(of: "]") {
            host = Substring(text[text.index(after: text.startIndex)..<end])
        } else if let colon = text.lastIndex(of: ":"), text.firstIndex(of: ":") == colon {
            host = Substring(text[..<colon])
        } else {
            host = Substring(text)
        }
        self.init(text: String(host.prefix { $0 != "%" }))
    }
}
