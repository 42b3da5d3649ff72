import CountersignTransport
import CountersignTrust
import CountersignWire

/// The app's server, and the path below which its routes are.
struct BaseURL: Sendable {
    let origin: Origin
    /// Empty, or begins with `/` and does not end with one.
    let prefix: String

    init(_ text: String, encryption: CountersignOptions.Encryption) throws(CountersignError) {
        let (origin, path) = try BaseURL.split(text)
        guard origin.security == .tls || encryption == .noneSoThatAnybodyReadsAndChangesEverything else {
            throw .misuse(
                "base URL `\(text)`: expected https://; in the clear, passwords and answers are everybody's")
        }
        var prefix = path
        while prefix.hasSuffix("/") { prefix.removeLast() }
        guard !prefix.contains("?") else { throw .misuse("base URL `\(text)`: expected no query") }
        try BaseURL.check(prefix)
        self.origin = origin
        self.prefix = prefix
    }

    /// Resolves a request's path: the target that is signed and sent.
    func target(_ path: String) throws(CountersignError) -> String {
        guard path.utf8.first == UInt8(ascii: "/") else {
            if path.hasPrefix("https://") || path.hasPrefix("http://") { return try target(url: path) }
            throw .misuse("path `\(BaseURL.bare(path))`: expected one that begins with `/`, or a whole URL")
        }
        let target = prefix.isEmpty ? path : prefix + path
        try BaseURL.check(target)
        return target
    }

    /// The client signs nothing for another server: that server could send the request to ours.
    private func target(url: String) throws(CountersignError) -> String {
        let (origin, path) = try BaseURL.split(url)
        let target = path.isEmpty || path.hasPrefix("?") ? "/\(path)" : path
        try BaseURL.check(target)
        let own = target.prefix { $0 != "?" }
        guard origin == self.origin, prefix.isEmpty || own == prefix || own.hasPrefix("\(prefix)/") else {
            throw .misuse("URL `\(BaseURL.bare(url))`: expected one below \(self.origin)\(prefix)")
        }
        return target
    }

    private static func split(_ url: String) throws(CountersignError) -> (Origin, path: String) {
        let security: Origin.Security
        let rest: Substring
        if url.hasPrefix("https://") {
            (security, rest) = (.tls, url.dropFirst(8))
        } else if url.hasPrefix("http://") {
            (security, rest) = (.plaintext, url.dropFirst(7))
        } else {
            throw .misuse("URL `\(bare(url))`: expected https://HOST…")
        }
        let end = rest.firstIndex { $0 == "/" || $0 == "?" || $0 == "#" } ?? rest.endIndex
        let (host, port) = authority(rest[..<end])
        guard let host, let port else {
            throw .misuse(
                "URL `\(bare(url))`: expected HOST or HOST:PORT after `//`, without user or password")
        }
        return (Origin(security, host: host, port: port), String(rest[end...]))
    }

    /// Nil for a part that is invalid; port 0 if none is named.
    private static func authority(_ text: Substring) -> (Trust.Host?, UInt16?) {
        guard let colon = text.lastIndex(of: ":"), !text[colon...].contains("]") else {
            return (try? Trust.Host(String(text)), 0)
        }
        let digits = text[text.index(after: colon)...]
        let port = digits.utf8.allSatisfy(ASCII.isDigit) ? UInt16(digits) : nil
        return (try? Trust.Host(String(text[..<colon])), port == 0 ? nil : port)
    }

    /// The client does not resolve dot segments, since the target is signed: a proxy that resolves them would
    /// forward another path.
    private static func check(_ target: String) throws(CountersignError) {
        guard target.utf8.allSatisfy({ $0 > 0x20 && $0 < 0x7F }) else {
            throw .misuse("path `\(bare(target))`: expected visible ASCII; encode the rest as %XX")
        }
        guard !target.utf8.contains(UInt8(ascii: "#")) else {
            throw .misuse("path `\(bare(target))`: a fragment is not sent")
        }
        let path = target.utf8.prefix { $0 != UInt8(ascii: "?") }
        // No other segment has a dot or an encoded one at its beginning.
        guard path.contains(where: { $0 == UInt8(ascii: ".") || $0 == UInt8(ascii: "%") }) else { return }
        for segment in path.split(separator: UInt8(ascii: "/")) where isDots(segment) {
            throw .misuse("path `\(bare(target))`: has a segment `\(segment)`")
        }
    }

    /// `.` and `..`, in all their encodings.
    private static func isDots(_ segment: Substring.UTF8View) -> Bool {
        guard segment.count <= 6, segment.first == UInt8(ascii: ".") || segment.first == UInt8(ascii: "%")
        else {
            return false
        }
        let plain = Substring(segment).lowercased().replacing("%2e", with: ".")
        return plain == "." || plain == ".."
    }

    /// Without the query, which may hold what no message should show.
    private static func bare(_ text: String) -> Substring {
        text.prefix { $0 != "?" && $0 != "#" }.prefix(256)
    }
}

extension Trust.Rule {
    /// The rule for the host of a client's base URL:
    /// `.host(ofBaseURL: url, pins: ["sha256/…"], backups: ["sha256/…"])`.
    ///
    /// The URL is parsed as ``CountersignClient`` parses it, so the rule is for the host that the client
    /// calls. Throws ``CountersignError/misuse(_:)`` for a URL that is not `https://HOST…`, and `TrustError`
    /// for invalid pins.
    public static func host(
        ofBaseURL baseURL: String, pins: [String], backups: [String], mode: Mode = .enforce
    ) throws -> Trust.Rule {
        try .host(ofBaseURL: baseURL, .pins(pins, backups: backups), mode: mode)
    }

    /// The same with any policy: `.host(ofBaseURL: url, .system)`.
    public static func host(
        ofBaseURL baseURL: String, _ policy: Trust.Policy, mode: Mode = .enforce
    ) throws -> Trust.Rule {
        let base = try BaseURL(baseURL, encryption: .required)
        return Trust.Rule(try Trust.HostPattern(base.origin.host.description), policy, mode: mode)
    }
}
