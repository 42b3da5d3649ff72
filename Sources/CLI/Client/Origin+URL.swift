import CountersignServer
import CountersignTransport
import CountersignTrust
import CountersignWire

extension Origin {
    /// What a draft for this server is sent over.
    var transport: Request.Transport { security == .tls ? .tls : .plain }

    /// A URL taken apart: its origin, and its target in the very bytes that were written.
    static func split(_ url: String) throws(Fault) -> (origin: Origin, target: [UInt8]) {
        let security: Security
        let rest: Substring
        if url.hasPrefix("https://") {
            (security, rest) = (.tls, url.dropFirst(8))
        } else if url.hasPrefix("http://") {
            (security, rest) = (.plaintext, url.dropFirst(7))
        } else {
            throw Fault(.usage, "URL `\(url)`: expected https://HOST… or http://HOST…")
        }
        let end = rest.firstIndex { $0 == "/" || $0 == "?" || $0 == "#" } ?? rest.endIndex
        guard let (name, port) = HostPort.split(String(rest[..<end])), port != 0 else {
            throw Fault(.usage, "URL `\(url)`: expected HOST or HOST:PORT after `//`, without user or password")
        }
        let host: Trust.Host
        do {
            host = try Trust.Host(name)
        } catch {
            throw Fault(.usage, "URL `\(url)`: \(error)")
        }
        var target = String(rest[end...])
        if !target.hasPrefix("/") { target = "/" + target }
        return (Origin(security, host, port: port ?? 0), try checkedTarget(target))
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
