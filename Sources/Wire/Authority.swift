/// The authority of a request, as signatures spell it. Source: RFC 9421 §2.2.3, RFC 9110 §4.2.3.
package enum Authority {
    /// `host` without `port`, where it ends in that. Letters keep their case.
    @_lifetime(copy host)
    package static func normalised(_ host: Span<UInt8>, without port: StaticString) -> Span<UInt8> {
        let count = host.count - port.utf8CodeUnitCount
        guard count > 0 else { return host }
        for index in 0..<port.utf8CodeUnitCount where host[count + index] != port.utf8Start[index] { return host }
        return host.extracting(0..<count)
    }
}

extension Request {
    /// How a client reached the trusted proxy that this request comes from, as that says it in
    /// `X-Forwarded-Proto`; how the proxy reached us where it says nothing else.
    package var proxiedTransport: Transport {
        guard let value = value(of: "x-forwarded-proto") else { return transport }
        let text = head.span.extracting(value.range)
        if text.matchesWithoutCase("https") { return .tls }
        return text.matchesWithoutCase("http") ? .plain : transport
    }
}

extension Request.Transport {
    /// How the port that goes without saying is written.
    package var defaultPortSuffix: StaticString {
        switch self {
        case .plain: ":80"
        case .tls: ":443"
        }
    }
}
