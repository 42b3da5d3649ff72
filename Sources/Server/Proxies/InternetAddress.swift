import Glibc

/// An address of a host, read from text: 4 bytes or 16 in network order. An IPv4 address that is mapped into IPv6 is that IPv4 address.
/// Source: RFC 4291 §2.2, §2.5.5.2.
struct InternetAddress: Sendable, Hashable, CustomStringConvertible {
    let bytes: [UInt8]

    /// Nil for what is no address. A link-local address may bear its interface, which says nothing about who it is.
    init?(_ text: some StringProtocol) {
        let text = String(text.prefix { $0 != "%" })
        var bytes = [UInt8](repeating: 0, count: 16)
        if inet_pton(AF_INET, text, &bytes) == 1 {
            self.bytes = Array(bytes.prefix(4))
        } else if inet_pton(AF_INET6, text, &bytes) == 1 {
            let isMapped = bytes.prefix(10).allSatisfy { $0 == 0 } && bytes[10] == 0xFF && bytes[11] == 0xFF
            self.bytes = isMapped ? Array(bytes.suffix(4)) : bytes
        } else {
            return nil
        }
    }

    /// One with a port, as the engine and some proxies write it: `192.0.2.1:50000`, `[2001:db8::1]:50000`; or without.
    init?(withPort text: some StringProtocol) {
        if text.hasPrefix("["), let end = text.lastIndex(of: "]") {
            self.init(text[text.index(after: text.startIndex)..<end])
        } else if let colon = text.lastIndex(of: ":"), text.firstIndex(of: ":") == colon {
            self.init(text[..<colon])
        } else {
            self.init(text)
        }
    }

    var description: String {
        var text = [CChar](repeating: 0, count: Int(INET6_ADDRSTRLEN))
        let family = bytes.count == 4 ? AF_INET : AF_INET6
        guard inet_ntop(family, bytes, &text, socklen_t(text.count)) != nil else { return "unknown" }
        return String(decoding: text.prefix { $0 != 0 }.map { UInt8(bitPattern: $0) }, as: UTF8.self)
    }
}
