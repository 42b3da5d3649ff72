import CountersignWire

/// The fields by which proxies tell a backend the caller and the original request. The gateway removes them
/// from every request, signed or not, so that no caller can set them. Source: docs/protocol.md, "To the
/// upstream".
struct ForbiddenCallerFields: Sendable {
    /// Lower-case names that a setting allows all the same.
    private let kept: Set<String>

    init(keeping kept: Set<String> = []) { self.kept = kept }

    /// Whether the gateway removes the field. Only names about which ``FieldIdentity`` says nothing can be
    /// among these.
    func isRemoved(_ field: Request.Field, of request: borrowing Request) -> Bool {
        guard field.known == .other,
            field.traits.isDisjoint(with: [.endsAtHop, .isReserved, .isHarmless])
        else { return false }
        let name = request.head.span.extracting(field.name.range)
        guard ForbiddenCallerFields.tells(name) else { return false }
        return kept.isEmpty || !kept.contains(name.text)
    }

    /// Names that the gateway writes itself, so that a caller's field would stand beside its own.
    static let written: Set<String> = [
        "countersign-client", "x-forwarded-for", "x-forwarded-proto", "x-forwarded-host", "forwarded",
    ]

    /// Whether a backend, or a framework in it, may trust a field of that name as set by a proxy. Backends
    /// write `_` for every byte that is no letter or digit, so this comparison treats all such bytes alike,
    /// too. `name` is in lower case.
    static func tells(_ name: Span<UInt8>) -> Bool {
        guard name.count > 2 else { return false }
        switch name[0] {
        case UInt8(ascii: "x"):
            return isOfFamily(withX: name) || name.count < 40 && contains(withX, name: name)
        case UInt8(ascii: "s"):
            return begins(name, with: "ssl-client-") || name.count < 40 && contains(others, name: name)
        case UInt8(ascii: "c"):
            return begins(name, with: "cf-access-") || name.count < 40 && contains(others, name: name)
        case UInt8(ascii: "d"), UInt8(ascii: "f"), UInt8(ascii: "h"), UInt8(ascii: "p"), UInt8(ascii: "r"),
            UInt8(ascii: "t"), UInt8(ascii: "w"):
            return name.count < 40 && contains(others, name: name)
        default: return false
        }
    }

    /// As ``tells(_:)``, without the fields in which proxies in front state a request's origin: proxies that
    /// ask for a decision send these along with the caller's own.
    static func tellsOtherThanProxies(_ name: Span<UInt8>) -> Bool {
        guard tells(name) else { return false }
        return !contains(proxiesOwn, name: name)
    }

    private static let proxiesOwn: [StaticString] = [
        "x-forwarded-for", "x-forwarded-proto", "x-forwarded-host", "x-forwarded-port", "x-forwarded-server",
        "forwarded",
        "x-real-ip", "x-envoy-external-address",
    ]

    /// Whether a backend may take the name for one of the gateway's own fields: `_` or another byte in place
    /// of `-`.
    static func isOursMisspelled(_ name: Span<UInt8>) -> Bool {
        let length = 11
        guard name.count >= length, begins(name, with: "countersign") else { return false }
        guard name.count > length else { return true }
        for index in length..<name.count
        where !ASCII.isLetter(name[index]) && !ASCII.isDigit(name[index]) && name[index] != UInt8(ascii: "-")
        {
            return true
        }
        return false
    }

    /// Whether a name that begins with `x` belongs to one of the large families, told apart by the letter
    /// after `x-`.
    private static func isOfFamily(withX name: Span<UInt8>) -> Bool {
        switch name[2] {
        case UInt8(ascii: "a"):
            return begins(name, with: "x-arr-") || begins(name, with: "x-accel-")
                || begins(name, with: "x-amzn-oidc-")
                || begins(name, with: "x-appengine-") || begins(name, with: "x-auth-request-")
        case UInt8(ascii: "c"):
            return begins(name, with: "x-client-cert-") || begins(name, with: "x-consumer-")
        case UInt8(ascii: "f"): return begins(name, with: "x-forwarded")
        case UInt8(ascii: "g"):
            return begins(name, with: "x-goog-authenticated-user-") || begins(name, with: "x-goog-iap-")
        case UInt8(ascii: "m"): return begins(name, with: "x-ms-client-principal")
        case UInt8(ascii: "o"): return begins(name, with: "x-original-")
        case UInt8(ascii: "s"): return begins(name, with: "x-ssl-")
        default: return false
        }
    }

    /// Names besides the families above.
    private static let withX: [StaticString] = [
        // The client's address.
        "x-real-ip", "x-client-ip", "x-cluster-client-ip", "x-originating-ip", "x-remote-ip", "x-remote-addr",
        "x-proxyuser-ip", "x-azure-clientip", "x-azure-socketip", "x-envoy-external-address",
        "x-true-client-ip", "x-coming-from", "x-forward-for", "x-forwarder-for", "x-nf-client-connection-ip",
        "x-vercel-forwarded-for",
        // The original request, and how it was made.
        "x-http-method-override", "x-http-method", "x-method-override", "x-rewrite-url", "x-host",
        "x-http-host-override", "x-scheme", "x-url-scheme", "x-https", "x-envoy-original-path",
        "x-envoy-original-host",
        "x-script-name", "x-sendfile-type",
        // Which of a framework's checks ran before. Source: CVE-2025-29927.
        "x-middleware-subrequest",
        // The caller's identity.
        "x-remote-user", "x-webauth-user", "x-client-cert", "x-client-verify", "x-client-dn",
    ]

    private static let others: [StaticString] = [
        "forwarded", "forwarded-for", "forwarded-for-ip", "true-client-ip", "cf-connecting-ip",
        "cf-connecting-ipv6",
        "cf-pseudo-ipv4", "cf-ipcountry", "cf-visitor", "fastly-client-ip", "fly-client-ip",
        "do-connecting-ip",
        "client-ip",
        "cluster-client-ip", "proxy-client-ip", "wl-proxy-client-ip", "wl-proxy-ssl", "remote-addr",
        "remote-host",
        "remote-user", "remote-client-ip", "front-end-https", "client-cert", "client-cert-chain",
        "ssl-protocol",
        "script-name", "https",
        // A CGI program receives this one as `HTTP_PROXY`. Source: CVE-2016-5385.
        "proxy",
    ]

    private static func contains(_ names: [StaticString], name: Span<UInt8>) -> Bool {
        for other in names where other.utf8CodeUnitCount == name.count && begins(name, with: other) {
            return true
        }
        return false
    }

    private static func begins(_ name: Span<UInt8>, with start: StaticString) -> Bool {
        let count = start.utf8CodeUnitCount
        guard name.count >= count else { return false }
        for index in 0..<count {
            let (byte, expected) = (name[index], start.utf8Start[index])
            if byte == expected { continue }
            guard expected == UInt8(ascii: "-"), !ASCII.isLetter(byte), !ASCII.isDigit(byte) else {
                return false
            }
        }
        return true
    }
}
