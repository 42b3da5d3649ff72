import CountersignAuthority
import CountersignHTTP
import CountersignTransport
import CountersignTrust
import CountersignWire

/// Where an endpoint is called: its name for TLS and the `Host` field, and the address that was checked. The
/// connection goes to that address, so that a name that leads elsewhere a moment later is of no use.
struct WebhookAddress: Sendable {
    let origin: Origin
    /// Path and query.
    let target: String
    let address: Trust.Host

    /// Ranges that are not of the Internet, or that lead to such. Source: IANA IPv4 and IPv6 Special-Purpose
    /// Address Registries (RFC 6890).
    private static let special = [
        "0.0.0.0/8", "10.0.0.0/8", "100.64.0.0/10", "127.0.0.0/8", "169.254.0.0/16", "172.16.0.0/12",
        "192.0.0.0/24", "192.0.2.0/24", "192.88.99.0/24", "192.168.0.0/16", "198.18.0.0/15",
        "198.51.100.0/24", "203.0.113.0/24", "224.0.0.0/4", "240.0.0.0/4",
        // All of IPv6 but the space of global addresses, and of that what stands for something else:
        // protocols, documentation, and IPv4 addresses in Teredo and 6to4.
        "::/3", "2001::/23", "2001:db8::/32", "2002::/16", "3fff::/20", "4000::/2", "8000::/1",
    ].compactMap(AddressRange.init)

    static func isPublic(_ address: NetworkAddress) -> Bool {
        !special.contains { $0.contains(address) }
    }

    /// The same error for a name that does not resolve and for one that resolves into the server's own
    /// network. Otherwise a party that may add endpoints and read why a delivery failed could look up names
    /// of that network.
    private static func notPublic(_ host: Trust.Host) -> OperationalError {
        OperationalError(
            .failed,
            message: """
                \(host) does not resolve, or leads to an address that is not an address of the Internet; \
                `webhook add --allow-private` allows such an address
                """)
    }

    /// Resolves the endpoint's name, which blocks. Every address must be allowed: otherwise a name with a
    /// public and a private one would be called now and then.
    init(of endpoint: WebhookEndpoint) throws(OperationalError) {
        let parts = try WebhookURL(endpoint.url)
        (origin, target) = (parts.origin, parts.target)
        let addresses: [SocketAddress]
        do throws(HTTPError) {
            addresses = try SocketAddress.resolve(
                host: parts.origin.host.description, port: Int(parts.origin.port))
        } catch {
            guard endpoint.reach == .anyAddress else { throw WebhookAddress.notPublic(parts.origin.host) }
            throw OperationalError(.unreachable, message: "\(error)")
        }
        for each in addresses where endpoint.reach == .publicAddresses {
            guard WebhookAddress.isPublic(each.network) else {
                throw WebhookAddress.notPublic(parts.origin.host)
            }
        }
        guard let first = addresses.first, let host = try? Trust.Host(first.network.text) else {
            throw OperationalError(.unreachable, message: "\(parts.origin.host): no address")
        }
        address = host
    }
}

/// The URL of an endpoint: HTTPS, without credentials and without a fragment.
package struct WebhookURL: Sendable {
    let origin: Origin
    let target: String

    package init(_ text: String) throws(OperationalError) {
        let problem = OperationalError(
            .usage, message: "`\(text)`: expected https://HOST[:PORT]/PATH, without a user and a fragment")
        guard text.utf8.count <= 2_048, text.utf8.allSatisfy({ $0 > 0x20 && $0 < 0x7F }),
            text.hasPrefix("https://"), !text.contains("#")
        else { throw problem }
        let rest = text.dropFirst("https://".utf8.count)
        let authority = rest.prefix { $0 != "/" && $0 != "?" }
        guard let (name, port) = HostPort.split(String(authority)), port != 0,
            let host = try? Trust.Host(name)
        else { throw problem }
        origin = Origin(.tls, host: host, port: port ?? 443)
        let path = rest.dropFirst(authority.count)
        target = path.hasPrefix("/") ? String(path) : "/" + path
    }
}
