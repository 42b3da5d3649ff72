import CountersignWire

/// The web pages that may read the app's responses in a browser. Source: Fetch Standard, "CORS protocol".
package struct CrossOriginRules: Sendable, Equatable {
    /// Pages of these origins may call without cookies; `*` alone stands for all.
    package var origins: [String] = []
    /// Pages of these may also have the browser send cookies.
    package var credentialedOrigins: [String] = []

    package init() {}

    package var isEmpty: Bool { origins.isEmpty && credentialedOrigins.isEmpty }

    /// The same pages, but browsers send no cookies for any of them.
    package var withoutCookies: CrossOriginRules {
        var rules = self
        rules.origins = origins == ["*"] ? origins : credentialedOrigins + origins
        rules.credentialedOrigins = []
        return rules
    }

    /// What a page of that origin may do; nil for nothing.
    package func grant(to origin: Span<UInt8>) -> CrossOriginGrant? {
        for named in credentialedOrigins where CrossOriginRules.equals(origin, text: named) {
            return CrossOriginGrant(origin: named, allowsCredentials: true)
        }
        for named in origins where named == "*" || CrossOriginRules.equals(origin, text: named) {
            return CrossOriginGrant(origin: named, allowsCredentials: false)
        }
        return nil
    }

    private static func equals(_ origin: Span<UInt8>, text: String) -> Bool {
        let bytes = Array(text.utf8)
        return origin.matches(bytes.span)
    }

    /// An origin as browsers write it: scheme, host and a port that is not the scheme's own, in lower case.
    /// Source: RFC 6454 §6.2.
    package static func isOrigin(_ text: String) -> Bool {
        let schemes: [(prefix: String, port: String)] = [("https://", ":443"), ("http://", ":80")]
        guard text.utf8.count <= 255, let scheme = schemes.first(where: { text.hasPrefix($0.prefix) }) else {
            return false
        }
        let host = text.dropFirst(scheme.prefix.count)
        let isOfHost = host.utf8.allSatisfy { byte in
            switch byte {
            case UInt8(ascii: "a")...UInt8(ascii: "z"), UInt8(ascii: "0")...UInt8(ascii: "9"): true
            case UInt8(ascii: "-"), UInt8(ascii: "."), UInt8(ascii: ":"), UInt8(ascii: "["),
                UInt8(ascii: "]"):
                true
            default: false
            }
        }
        return isOfHost && !host.isEmpty && host.first != ":" && !host.hasSuffix(scheme.port)
    }
}

/// The permission that a browser enforces for a page.
package struct CrossOriginGrant: Sendable, Equatable {
    /// As it is sent back: the page's origin, or `*`.
    package let origin: String
    package let allowsCredentials: Bool

    fileprivate var withoutCredentials: CrossOriginGrant {
        CrossOriginGrant(origin: origin, allowsCredentials: false)
    }
}

extension Gate {
    /// What the page of a preflight request's origin may do, by ``crossOriginGrant(for:)``. Nil if the
    /// request is no preflight request. Source: Fetch Standard, "CORS-preflight fetch".
    package func preflightGrant(for request: Request) throws(Refusal) -> CrossOriginGrant? {
        guard request.matches(request.method, text: "OPTIONS"), keys.hasCrossOriginRules,
            request.value(of: "access-control-request-method") != nil
        else { return nil }
        return try crossOriginGrant(for: request)
    }

    /// What a page may do whose request names no app: by the app of the request's host; or else by any app
    /// without a host of its own, but without cookies, which belong to one app. The request that follows a
    /// preflight is judged by its own app. Nil if no app allows the origin.
    package func crossOriginGrant(for request: Request) throws(Refusal) -> CrossOriginGrant? {
        guard keys.hasCrossOriginRules, let origin = request.value(of: "origin") else { return nil }
        let value = request.head.span.extracting(origin.range)
        if let hosted = try keys.app(at: request) {
            return hosted.policy.traffic.crossOrigin.grant(to: value)
        }
        for rules in keys.crossOriginRules {
            if let grant = rules.grant(to: value) { return grant.withoutCredentials }
        }
        return nil
    }
}
