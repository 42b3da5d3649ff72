import CCurl
import CountersignTrust

/// The lists that a transfer gives libcurl, which reads them to its end: header fields, and where the host is.
final class Lists {
    typealias List = UnsafeMutablePointer<curl_slist>

    let fields: List?
    let route: List?

    init(_ request: OutgoingRequest, _ options: TransportOptions) {
        fields = Lists.fieldList(of: request)
        route = Lists.routeList(to: request.origin.host, options)
    }

    deinit {
        curl_slist_free_all(fields)
        curl_slist_free_all(route)
    }

    private static func fieldList(of request: OutgoingRequest) -> List? {
        var list: List?
        var line: [UInt8] = []
        func add(_ name: String, _ separator: String, _ value: [UInt8] = []) {
            line.removeAll(keepingCapacity: true)
            line += name.utf8
            line += separator.utf8
            line += value
            line.append(0)
            list = line.withUnsafeBytes { curl_slist_append(list, $0.bindMemory(to: CChar.self).baseAddress) } ?? list
        }
        add("Host", ": ", Array(request.authority.utf8))
        for field in request.fields {
            // libcurl's spelling for a field without a value.
            add(field.name, field.value.isEmpty ? ";" : ": ", field.value)
        }
        // Fields of libcurl's own that were not signed, or not wanted: an empty one takes it out. `Expect` would wait for a
        // permission that is not needed.
        for name in ["Accept", "Content-Type", "Expect", "User-Agent"]
        where !request.fields.contains(where: { $0.isNamed(name) }) {
            add(name, ":")
        }
        return list
    }

    private static func routeList(to host: Trust.Host, _ options: TransportOptions) -> List? {
        guard let address = options.addresses[host] else { return nil }
        // Whatever the port, that host, the same port.
        return curl_slist_append(nil, "\(Origin(.tls, host).bracketedHost)::\(Origin(.tls, address).bracketedHost):")
    }
}
