import CountersignTransport
import CountersignWire

/// One cookie of the server's. Source: RFC 6265 §5.3.
public struct Cookie: Sendable, Hashable {
    /// As the server has it, compared with case.
    public let name: String
    /// Often a secret, so it is not printed.
    public let value: String
    /// The path below which it is sent; begins with `/`.
    public let path: String
    /// The end of its time in whole Unix seconds; nil for one that ends with the process.
    public let expires: Int64?
    /// Whether it is sent over TLS alone.
    public let isSecure: Bool

    /// Bytes of one `Set-Cookie` field that is read; a longer one is ignored. Source: RFC 6265 §6.1.
    private static let mostBytes = 4096
}

extension Cookie: CustomStringConvertible, CustomReflectable {
    /// The name and the path.
    public var description: String { "cookie \(name) for \(path)" }

    /// A dump shows no more than a log does.
    public var customMirror: Mirror { Mirror(self, children: ["name": name, "path": path]) }
}

extension Cookie {
    /// What a cookie is set by: the request that was answered, and when.
    package struct Setting {
        /// The server's host in lower case, without a port.
        let host: String
        /// The request's target without its query.
        let path: String
        let isEncrypted: Bool
        /// Whole Unix seconds.
        let time: Int64

        package init(host: String, path: String, isEncrypted: Bool, time: Int64) {
            (self.host, self.path, self.isEncrypted, self.time) = (host, path, isEncrypted, time)
        }
    }

    /// What a `Set-Cookie` field says; nil where it sets none. One whose time is over removes its namesake.
    /// Source: RFC 6265 §5.2; the prefixes of names: draft-ietf-httpbis-rfc6265bis §4.1.3.
    init?(_ field: String, _ setting: Setting) {
        guard field.utf8.count <= Cookie.mostBytes, field.utf8.allSatisfy(Cookie.isText) else { return nil }
        let parts = field.split(separator: ";", omittingEmptySubsequences: false)
        guard let pair = parts.first, let (name, value) = Cookie.pair(pair), !name.isEmpty, let value else {
            return nil
        }
        var (path, expires, lifetime) = (Cookie.defaultPath(of: setting.path), Int64?.none, Int64?.none)
        var (isSecure, hasDomain, hasPath) = (false, false, false)
        for part in parts.dropFirst() {
            guard let (attribute, text) = Cookie.pair(part) else { continue }
            switch (attribute.lowercased(), text) {
            case ("expires", let text?): expires = CookieDate.seconds(text) ?? expires
            case ("max-age", let text?): lifetime = Cookie.lifetime(text) ?? lifetime
            case ("domain", let text?) where !text.isEmpty:
                guard Cookie.domain(text.lowercased(), matches: setting.host) else { return nil }
                hasDomain = true
            case ("path", let text?) where text.hasPrefix("/"): (path, hasPath) = (text, true)
            case ("secure", _): isSecure = true
            default: break
            }
        }
        guard setting.isEncrypted || !isSecure else { return nil }
        let isRootAlone = isSecure && hasPath && path == "/" && !hasDomain
        if name.lowercased().hasPrefix("__secure-"), !isSecure { return nil }
        if name.lowercased().hasPrefix("__host-"), !isRootAlone { return nil }
        if let lifetime { expires = lifetime > 0 ? setting.time.addingClamped(lifetime) : 0 }
        (self.name, self.value, self.path, self.expires, self.isSecure) = (name, value, path, expires, isSecure)
    }

    /// Whether it goes with a request for `path` at `time`. Source: RFC 6265 §5.1.4, §5.4.
    func isFor(path: String, isEncrypted: Bool, at time: Int64) -> Bool {
        guard isEncrypted || !isSecure, isAlive(at: time) else { return false }
        guard path != self.path else { return true }
        return path.hasPrefix(self.path) && (self.path.hasSuffix("/") || path.dropFirst(self.path.count).hasPrefix("/"))
    }

    func isAlive(at time: Int64) -> Bool { expires.map { $0 > time } ?? true }

    private static func isText(_ byte: UInt8) -> Bool { byte == 9 || (byte >= 32 && byte != 127) }

    /// A name and, behind `=`, a value; nil for white space alone.
    private static func pair(_ text: Substring) -> (name: String, value: String?)? {
        let halves = text.split(separator: "=", maxSplits: 1, omittingEmptySubsequences: false)
        guard let name = halves.first.map(trimmed), halves.count == 2 || !name.isEmpty else { return nil }
        return (name, halves.count == 2 ? trimmed(halves[1]) : nil)
    }

    private static func trimmed(_ text: Substring) -> String {
        var text = text
        while let first = text.first, first == " " || first == "\t" { text = text.dropFirst() }
        while let last = text.last, last == " " || last == "\t" { text = text.dropLast() }
        return String(text)
    }

    /// Seconds, negative ones too. Digits beyond what fits mean for ever. Source: RFC 6265 §5.2.2.
    private static func lifetime(_ text: String) -> Int64? {
        let digits = text.hasPrefix("-") ? text.dropFirst() : text[...]
        guard !digits.isEmpty, digits.utf8.allSatisfy(ASCII.isDigit) else { return nil }
        return Int64(text) ?? (text.hasPrefix("-") ? 0 : .max)
    }

    /// Source: RFC 6265 §5.1.3. An address is no domain.
    private static func domain(_ text: String, matches host: String) -> Bool {
        let domain = text.hasPrefix(".") ? String(text.dropFirst()) : text
        let isAddress = host.contains(":") || host.utf8.allSatisfy { ASCII.isDigit($0) || $0 == UInt8(ascii: ".") }
        return domain == host || (!isAddress && !domain.isEmpty && host.hasSuffix(".\(domain)"))
    }

    /// Source: RFC 6265 §5.1.4.
    private static func defaultPath(of path: String) -> String {
        guard path.hasPrefix("/"), let last = path.lastIndex(of: "/"), last != path.startIndex else { return "/" }
        return String(path[..<last])
    }
}

extension Int64 {
    fileprivate func addingClamped(_ other: Int64) -> Int64 {
        let (sum, overflow) = addingReportingOverflow(other)
        return overflow ? .max : sum
    }
}
