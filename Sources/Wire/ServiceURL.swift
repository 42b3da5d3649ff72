/// The address of a service as a URL of the form `SCHEME://[USER[:PASSWORD]@]HOSTS[/PATH][?NAME=VALUE…]`.
/// Each service reads the hosts and the path itself. Source: RFC 3986 §3, without fragments.
package struct ServiceURL {
    package let scheme: String
    /// Decoded, and possibly empty; nil without `@`.
    package let user: String?
    /// Decoded and not empty; nil without `:` before `@`. Keep it as a secret.
    package let password: String?
    /// As written.
    package let hosts: Substring
    /// As written, without the first slash; nil without a slash.
    package let path: Substring?
    /// Decoded, by name; no value is empty.
    package let parameters: [String: String]

    /// Nil for a text of another form, and for a parameter that is repeated or is not one of `names`.
    package init?(_ text: String, parameters names: Set<String>) {
        guard let mark = text.firstRange(of: "://"), !text.contains("#"),
            !text.contains(where: { $0.isWhitespace })
        else { return nil }
        scheme = String(text[..<mark.lowerBound])
        let (place, query) = ServiceURL.halves(of: text[mark.upperBound...], at: "?")
        guard let parameters = ServiceURL.parameters(in: query, of: names) else { return nil }
        self.parameters = parameters
        let (authority, path) = ServiceURL.halves(of: place, at: "/")
        self.path = path
        guard let at = authority.lastIndex(of: "@") else {
            (user, password, hosts) = (nil, nil, authority)
            return
        }
        let (name, secret) = ServiceURL.halves(of: authority[..<at], at: ":")
        guard let user = PercentEncoding.decodedText(name) else { return nil }
        self.user = user
        hosts = authority[authority.index(after: at)...]
        guard let secret else {
            password = nil
            return
        }
        guard let decoded = PercentEncoding.decodedText(secret), !decoded.isEmpty else { return nil }
        password = decoded
    }

    private static func parameters(in query: Substring?, of names: Set<String>) -> [String: String]? {
        var parameters: [String: String] = [:]
        for pair in query?.split(separator: "&", omittingEmptySubsequences: false) ?? [] {
            let (name, encoded) = halves(of: pair, at: "=")
            guard let encoded, let value = PercentEncoding.decodedText(encoded), !value.isEmpty,
                names.contains(String(name)),
                parameters.updateValue(value, forKey: String(name)) == nil
            else { return nil }
        }
        return parameters
    }

    /// The text before and behind the first `mark`; the second half is nil without one.
    private static func halves(of text: Substring, at mark: Character) -> (Substring, Substring?) {
        guard let place = text.firstIndex(of: mark) else { return (text, nil) }
        return (text[..<place], text[text.index(after: place)...])
    }

    /// The host and the port of `HOST[:PORT]`, of which the host may be an IPv6 address in brackets; it is as
    /// written otherwise, and may be empty only without brackets. Nil for a text of another form.
    package static func place(_ text: Substring, port: UInt16) -> (host: Substring, port: UInt16)? {
        let isBracketed = text.hasPrefix("[")
        guard let end = isBracketed ? text.firstIndex(of: "]") : text.lastIndex(of: ":") ?? text.endIndex
        else { return nil }
        let host = isBracketed ? text[..<end].dropFirst() : text[..<end]
        let rest = isBracketed ? text[end...].dropFirst() : text[end...]
        guard !host.isEmpty || !isBracketed else { return nil }
        if rest.isEmpty { return (host, port) }
        let digits = rest.dropFirst()
        guard rest.hasPrefix(":"), digits.utf8.allSatisfy({ (0x30...0x39).contains($0) }),
            let number = UInt16(digits), number > 0
        else { return nil }
        return (host, number)
    }

    /// Whether a host names this machine by its loopback interface: `localhost`, `::1`, or `127.` and digits.
    package static func isLoopback(host: String) -> Bool {
        host == "localhost" || host == "::1"
            || (host.hasPrefix("127.") && host.utf8.allSatisfy { $0 == 0x2E || (0x30...0x39).contains($0) })
    }
}
