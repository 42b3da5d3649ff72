import CountersignGate
import CountersignHTTP
import CountersignSchemes
import CountersignSeal
import CountersignWire

/// What the gateway verified about a request, signed for a backend that is also reachable without the
/// gateway: a JWT (RFC 7519) in compact form (RFC 7515 §7.1) under Ed25519 (RFC 8037 §3.1).
enum Assertion {
    /// Seconds from `iat` to `exp`.
    static let lifetime: Int64 = 60

    /// The claims. `htm` and `htu` bind it to one request: the method, and the request target exactly as it
    /// is forwarded, query included (not a URI as in RFC 9449: a backend behind more proxies does not know
    /// under which name it was called).
    static func claims(
        for request: Request, caller: Caller, from client: String, event: EventID, issuer: String,
        audience: String,
        at now: Int64
    ) -> [UInt8] {
        let release = caller.release
        let head = request.head.span
        var claims = JSONLine(for: .wholeObject)
        claims.add("iss", value: issuer)
        claims.add("aud", value: audience)
        claims.add("app", value: release.app)
        claims.add("release", value: release.id.description)
        claims.add("platform", value: release.platform)
        claims.add("version", value: release.version)
        claims.add("scheme", value: caller.schemeName)
        if let session = caller.session {
            claims.add("sub", value: session.account.subject)
            claims.add("sid", value: session.id.description)
            claims.add("auth_time", value: Int(session.created))
            claims.add("amr", values: session.authenticationMethods)
        }
        claims.add("client", value: client)
        claims.add("iat", value: Int(now))
        claims.add("exp", value: Int(now + lifetime))
        let identifier = event.bytes
        claims.add("jti", value: identifier.span)
        claims.add("htm", value: head.extracting(request.method.range))
        claims.add("htu", value: head.extracting(request.target.range))
        add(AssertionBodyClaim(of: request, expected: caller.body), to: &claims)
        claims.end()
        return claims.bytes
    }

    private static func add(_ body: AssertionBodyClaim, to claims: inout JSONLine) {
        switch body {
        case .sha256(let digest): claims.add("body_sha256", value: Base64.encode(digest.span, as: .url))
        case .sha512(let digest): claims.add("body_sha512", value: Base64.encode(digest.span, as: .url))
        case .open: claims.add("body", value: "open")
        }
    }
}

extension Session {
    /// How the caller was authenticated, in the words of RFC 8176 §2: by a password at the login and, except
    /// for bearer sessions, by possession of the session's key with each request. Never `hwk`: that key is in
    /// the device's memory, and where the device's own keys are is its unproved statement.
    fileprivate var authenticationMethods: [StaticString] {
        switch keyPossession {
        case .none: ["pwd"]
        case .software: ["pwd", "swk"]
        }
    }
}

/// What an assertion states about the body.
private enum AssertionBodyClaim {
    case sha256(ShortBytes)
    case sha512(ShortBytes)
    /// The body streams, and the caller's signature covers nothing of it that a backend could check.
    case open

    init(of request: Request, expected signed: BodyExpectation) {
        // The gateway checks a digest that the signature covers, at the latest before it forwards the last
        // bytes; hashing again adds nothing.
        switch signed {
        case .digests(let short?, _): self = .sha256(short)
        case .digests(nil, let long?) where !request.isBodyWhole: self = .sha512(long)
        case _ where request.isBodyWhole: self = .sha256(ShortBytes(SHA256.digest(request.body.span)))
        default: self = .open
        }
    }
}

/// Signs assertions, for one issuer and audience.
struct AssertionIssuer {
    private let keys: AssertionKeys
    private let issuer: String
    private let audience: String

    init(_ keys: AssertionKeys, issuer: String, audience: String) {
        self.keys = keys
        self.issuer = issuer
        self.audience = audience
    }

    /// Appends the `Countersign-Assertion` line. Throws `unavailable` if the keys cannot be read: no request
    /// goes on unsigned.
    func append(
        for request: Request, caller: Caller, from client: String, event: EventID, at now: Int64,
        to lines: inout [UInt8]
    ) throws(Refusal) {
        let edition: AssertionKeys.Edition
        do {
            edition = try keys.latest()
        } catch {
            throw Refusal(.unavailable, detail: "assertion keys: \(error.message)")
        }
        let claims = Assertion.claims(
            for: request, caller: caller, from: client, event: event, issuer: issuer, audience: audience,
            at: now)
        lines.append(contentsOf: "Countersign-Assertion: ".utf8)
        let start = lines.count
        lines.append(contentsOf: edition.header)
        lines.append(UInt8(ascii: "."))
        lines.append(contentsOf: Base64.encode(claims.span, as: .url).utf8)
        let signature = edition.signer.sign(lines.span.extracting(start...))
        lines.append(UInt8(ascii: "."))
        lines.append(contentsOf: Base64.encode(signature.span, as: .url).utf8)
        lines.append(contentsOf: "\r\n".utf8)
    }
}
