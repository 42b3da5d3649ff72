import CountersignSeal
import CountersignWire

/// A database of a PostgreSQL server, as `postgres://[USER[:PASSWORD]@]HOST[:PORT]/DATABASE[?NAME=VALUE…]`
/// names it. The host of a Unix socket is its folder, percent-encoded.
///
/// A server that is not on this machine is reached over TLS alone, with its certificate verified for the
/// host's name, and takes the password by SCRAM bound to that TLS connection.
package struct PostgreSQLAddress: Sendable, Equatable {
    /// Libpq's parameters that an address may have behind `?`.
    private static let names: Set = ["sslmode", "sslrootcert", "sslcert", "sslkey", "passfile"]

    package let host: String
    package let port: UInt16
    /// Nil for the name of the process's user.
    package let user: String?
    package let database: String
    let password: ServicePassword?
    /// By name.
    let parameters: [String: String]

    /// Nil for a text of another form, one with an unknown parameter, or one that would give up TLS on the
    /// way to another machine.
    package init?(url text: String) {
        guard let scheme = text.firstRange(of: "://"),
            ["postgres", "postgresql"].contains(text[..<scheme.lowerBound])
        else { return nil }
        var rest = text[scheme.upperBound...]
        guard !rest.contains("#"), !rest.contains(where: { $0.isWhitespace }) else { return nil }
        var parameters: [String: String] = [:]
        if let mark = rest.firstIndex(of: "?") {
            for pair in rest[rest.index(after: mark)...].split(
                separator: "&", omittingEmptySubsequences: false)
            {
                guard let equals = pair.firstIndex(of: "="),
                    let value = PercentEncoding.decodedText(pair[pair.index(after: equals)...]),
                    !value.isEmpty,
                    PostgreSQLAddress.names.contains(String(pair[..<equals])),
                    parameters.updateValue(value, forKey: String(pair[..<equals])) == nil
                else { return nil }
            }
            rest = rest[..<mark]
        }
        guard let slash = rest.firstIndex(of: "/"),
            let database = PercentEncoding.decodedText(rest[rest.index(after: slash)...]), !database.isEmpty
        else { return nil }
        var place = rest[..<slash]
        var user: String?
        var password: ServicePassword?
        if let at = place.lastIndex(of: "@") {
            let parts = place[..<at].split(separator: ":", maxSplits: 1, omittingEmptySubsequences: false)
            guard let name = PercentEncoding.decodedText(parts[0]), !name.isEmpty else { return nil }
            user = name
            if parts.count > 1 {
                guard let text = PercentEncoding.decodedText(parts[1]), !text.isEmpty else { return nil }
                password = ServicePassword(text)
            }
            place = place[place.index(after: at)...]
        }
        guard let (host, port) = PostgreSQLAddress.place(place) else { return nil }
        self.host = host
        self.port = port
        self.user = user
        self.password = password
        self.database = database
        let isLocal = PostgreSQLAddress.isLocal(host)
        switch parameters["sslmode"] {
        case nil where !isLocal: parameters["sslmode"] = "verify-full"
        case nil where host.hasPrefix("/"): break
        case nil: parameters["sslmode"] = "prefer"
        case "verify-full": break
        case "disable", "prefer", "require", "verify-ca": guard isLocal else { return nil }
        default: return nil
        }
        self.parameters = parameters
    }

    /// Whether the server is on this machine, so that no other one can read what is sent to it.
    var isLocal: Bool { PostgreSQLAddress.isLocal(host) }

    /// What messages call the database: never with the password.
    package var name: String { "postgres://\(authority)/\(database)" }

    /// The address with the password masked.
    package var text: String {
        var text = "postgres://"
        if let user { text += user + (password == nil ? "" : ":***") + "@" }
        text += "\(authority)/\(database)"
        let pairs = parameters.sorted { $0.key < $1.key }.map { "\($0.key)=\($0.value)" }
        return text + (pairs.isEmpty ? "" : "?" + pairs.joined(separator: "&"))
    }

    private var authority: String {
        if host.hasPrefix("/") { return host.split(separator: "/").map { "%2F\($0)" }.joined() }
        let host = host.contains(":") ? "[\(host)]" : host
        return port == 5432 ? host : "\(host):\(port)"
    }

    private static func isLocal(_ host: String) -> Bool {
        host.hasPrefix("/") || host == "localhost" || host == "::1"
            || (host.hasPrefix("127.") && host.utf8.allSatisfy { $0 == 0x2E || (0x30...0x39).contains($0) })
    }

    private static func place(_ text: Substring) -> (host: String, port: UInt16)? {
        var host = text
        var port: UInt16 = 5432
        if text.hasPrefix("[") {
            guard let end = text.firstIndex(of: "]") else { return nil }
            host = text[text.index(after: text.startIndex)..<end]
            let rest = text[text.index(after: end)...]
            if !rest.isEmpty {
                guard rest.hasPrefix(":"), let number = UInt16(rest.dropFirst()), number > 0 else {
                    return nil
                }
                port = number
            }
            return host.isEmpty ? nil : (String(host), port)
        }
        if let colon = text.lastIndex(of: ":") {
            guard let number = UInt16(text[text.index(after: colon)...]), number > 0 else { return nil }
            (host, port) = (text[..<colon], number)
        }
        // A comma separates hosts for libpq, which are not supported.
        guard let decoded = PercentEncoding.decodedText(host), !decoded.isEmpty,
            !decoded.contains(where: { ",:@".contains($0) })
        else { return nil }
        return (decoded, port)
    }
}
