import CountersignAuthority
import CountersignSeal
import CountersignWire

/// The servers of a Redis deployment, as `redis://[[USER]:PASSWORD@]HOST[:PORT][,HOST[:PORT]…][/DATABASE]`
/// names them, of which one is the master; `rediss` for TLS. `passfile` is a file with the password,
/// `cafile` one with the authorities that the certificate is verified against.
///
/// A server that is not on this machine is reached over TLS alone, with its certificate verified for the
/// host's name.
package struct RedisAddress: Sendable, Equatable {
    static let mostServers = 8
    private static let names: Set = ["passfile", "cafile"]

    package struct Server: Sendable, Equatable {
        let host: String
        let port: UInt16

        var text: String { "\(host.contains(":") ? "[\(host)]" : host):\(port)" }

        fileprivate var isLocal: Bool { ServiceURL.isLoopback(host: host) }
    }

    package let servers: [Server]
    let database: Int
    /// Nil for Redis' default user.
    let user: String?
    private let password: ServicePassword?
    let isEncrypted: Bool
    private let passwordFile: String?
    /// Nil for the system's authorities.
    let authorityFile: String?

    /// The files that the address names, by the parameter's name.
    package var files: [(name: String, path: String)] {
        [("passfile", passwordFile), ("cafile", authorityFile)].compactMap { name, path in
            path.map { (name, $0) }
        }
    }

    /// The form that ``init(url:)`` accepts, for messages.
    package static let form =
        "redis://[[USER]:PASSWORD@]HOST[:PORT][,HOST[:PORT]…][/DATABASE][?passfile=FILE], where HOST is this "
        + "machine, or rediss://… for TLS, with ?cafile=FILE"

    /// Nil for a text of another form, and for one that would send requests over the network without TLS.
    package init?(url text: String) {
        guard text.utf8.count <= 4_096,
            let url = ServiceURL(text, parameters: RedisAddress.names),
            ["redis", "rediss"].contains(url.scheme)
        else { return nil }
        isEncrypted = url.scheme == "rediss"
        passwordFile = url.parameters["passfile"]
        authorityFile = url.parameters["cafile"]
        guard isEncrypted || authorityFile == nil else { return nil }
        if let path = url.path {
            guard path.utf8.allSatisfy({ (0x30...0x39).contains($0) }), let number = Int(path),
                number <= 9_999
            else { return nil }
            database = number
        } else {
            database = 0
        }
        // A user has a password, in one place.
        guard url.user == nil || (url.password == nil) != (passwordFile == nil) else { return nil }
        user = url.user?.isEmpty == true ? nil : url.user
        password = url.password.map { ServicePassword($0) }
        var servers: [Server] = []
        for place in url.hosts.split(separator: ",", omittingEmptySubsequences: false) {
            guard let server = RedisAddress.server(place), !servers.contains(server) else { return nil }
            servers.append(server)
        }
        guard (1...RedisAddress.mostServers).contains(servers.count),
            isEncrypted || servers.allSatisfy(\.isLocal)
        else { return nil }
        self.servers = servers
    }

    /// The address with the password masked.
    package var text: String {
        var text = isEncrypted ? "rediss://" : "redis://"
        if user != nil || password != nil { text += (user ?? "") + (password == nil ? "" : ":***") + "@" }
        text += servers.map(\.text).joined(separator: ",") + (database == 0 ? "" : "/\(database)")
        let parameters = [("cafile", authorityFile), ("passfile", passwordFile)].compactMap { name, value in
            value.map { "\(name)=\($0)" }
        }
        return text + (parameters.isEmpty ? "" : "?" + parameters.joined(separator: "&"))
    }

    /// The password, from the address or the file; nil if neither has one.
    func findPassword() throws(OperationalError) -> Secret? {
        guard let passwordFile else { return password?.secret }
        guard let secret = try KeyFile.read(passwordFile), secret.count > 0 else {
            throw OperationalError(.failed, message: "\(passwordFile): expected the password of Redis")
        }
        return secret
    }

    private static func server(_ text: Substring) -> Server? {
        guard let (host, port) = ServiceURL.place(text, port: 6379) else { return nil }
        let isName = host.utf8.allSatisfy { $0 > 0x20 && $0 < 0x7F && $0 != 0x3A && $0 != 0x25 }
        guard text.hasPrefix("[") || (isName && !host.isEmpty) else { return nil }
        return Server(host: String(host), port: port)
    }
}
