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
        func add(_ line: [UInt8]) {
            let text = (line + [0]).map { CChar(bitPattern: $0) }
            list = curl_slist_append(list, text) ?? list
        }
        add(Array("Host: \(request.authority)".utf8))
        for field in request.fields {
            // libcurl's spelling for a field without a value.
            add(Array(field.name.utf8) + (field.value.isEmpty ? Array(";".utf8) : Array(": ".utf8) + field.value))
        }
        // Fields of libcurl's own that were not signed, or not wanted: an empty one takes it out. `Expect` would wait for a
        // permission that is not needed.
        for name in ["Accept", "Content-Type", "Expect", "User-Agent"]
        where !request.fields.contains(where: { $0.name.lowercased() == name.lowercased() }) {
            add(Array("\(name):".utf8))
        }
        return list
    }

    private static func routeList(to host: Host, _ options: TransportOptions) -> List? {
        guard let address = options.addresses[host] else { return nil }
        // Whatever the port, that host, the same port.
        return curl_slist_append(nil, "\(Origin(.tls, host).bracketedHost)::\(Origin(.tls, address).bracketedHost):")
    }
}
