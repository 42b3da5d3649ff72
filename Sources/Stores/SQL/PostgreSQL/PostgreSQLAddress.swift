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
        guard let url = ServiceURL(text, parameters: PostgreSQLAddress.names),
            ["postgres", "postgresql"].contains(url.scheme), url.user?.isEmpty != true,
            let database = url.path.flatMap({ PercentEncoding.decodedText($0) }), !database.isEmpty,
            let (host, port) = PostgreSQLAddress.place(url.hosts)
        else { return nil }
        var parameters = url.parameters
        self.host = host
        self.port = port
        user = url.user
        password = url.password.map { ServicePassword($0) }
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

    /// The files that the address names, by the parameter's name.
    package var files: [(name: String, path: String)] {
        ["sslrootcert", "sslcert", "sslkey", "passfile"].compactMap { name in
            parameters[name].map { (name, $0) }
        }
        // `system` is no file but libpq's word for the system's authorities.
        .filter { $0 != ("sslrootcert", "system") }
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
        host.hasPrefix("/") || ServiceURL.isLoopback(host: host)
    }

    private static func place(_ text: Substring) -> (host: String, port: UInt16)? {
        guard let (host, port) = ServiceURL.place(text, port: 5432) else { return nil }
        if text.hasPrefix("[") { return (String(host), port) }
        // A comma separates hosts for libpq, which are not supported.
        guard let decoded = PercentEncoding.decodedText(host), !decoded.isEmpty,
            !decoded.contains(where: { ",:@".contains($0) })
        else { return nil }
        return (decoded, port)
    }
}
