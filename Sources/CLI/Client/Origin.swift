import CountersignServer
import CountersignWire

/// Where a server is: `https://host:port`.
struct Origin: Equatable, CustomStringConvertible {
    var transport: Request.Transport
    /// IPv6 without its brackets.
    var host: String
    var port: UInt16

    /// As the `Host` field has it: the port is left out where it goes without saying. Source: RFC 9110 §7.2.
    var authority: String {
        let host = HostPort.bracketed(host)
        return port == Origin.defaultPort(transport) ? host : "\(host):\(port)"
    }

    var description: String { "\(transport == .tls ? "https" : "http")://\(authority)" }

    static func defaultPort(_ transport: Request.Transport) -> UInt16 { transport == .tls ? 443 : 80 }

    /// A URL taken apart: its origin, and its target in the very bytes that were written.
    static func split(_ url: String) throws(Fault) -> (origin: Origin, target: [UInt8]) {
        let transport: Request.Transport
        let rest: Substring
        if url.hasPrefix("https://") {
            (transport, rest) = (.tls, url.dropFirst(8))
        } else if url.hasPrefix("http://") {
            (transport, rest) = (.plain, url.dropFirst(7))
        } else {
            throw Fault(.usage, "URL `\(url)`: expected https://HOST… or http://HOST…")
        }
        let end = rest.firstIndex { $0 == "/" || $0 == "?" || $0 == "#" } ?? rest.endIndex
        guard let (host, port) = HostPort.split(String(rest[..<end])), port != 0 else {
            throw Fault(.usage, "URL `\(url)`: expected HOST or HOST:PORT after `//`, without user or password")
        }
        var target = String(rest[end...])
        if !target.hasPrefix("/") { target = "/" + target }
        let origin = Origin(transport: transport, host: host.lowercased(), port: port ?? defaultPort(transport))
        return (origin, try checkedTarget(target))
    }

    /// A path with its query, to be sent as it stands; a fragment is the client's own and stays here.
    static func checkedTarget(_ text: String) throws(Fault) -> [UInt8] {
        let bytes = Array(text.utf8.prefix { $0 != UInt8(ascii: "#") })
        guard bytes.first == UInt8(ascii: "/"), bytes.allSatisfy({ $0 > 0x20 && $0 < 0x7F }) else {
            throw Fault(.usage, "path `\(text)`: expected visible ASCII beginning with `/`; encode the rest as %XX")
        }
        return bytes
    }
}
