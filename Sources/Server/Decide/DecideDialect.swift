import CountersignWire

/// How a proxy that asks us about a request says which one it means. Source: docs/protocol.md, "Decide".
public enum DecideDialect: String, Sendable, CaseIterable {
    /// `auth_request`.
    case nginx
    /// `forward_auth`.
    case caddy
    /// ForwardAuth.
    case traefik
    /// HTTP `ext_authz`.
    case envoy
    case haproxy

    /// The fields that name the request's method, target and host; nil where they are the asking request's
    /// own, the target behind the route.
    var names: (method: StaticString, target: StaticString, host: StaticString)? {
        switch self {
        case .nginx, .haproxy: ("x-original-method", "x-original-uri", "x-original-host")
        case .caddy, .traefik: ("x-forwarded-method", "x-forwarded-uri", "x-forwarded-host")
        case .envoy: nil
        }
    }
}
