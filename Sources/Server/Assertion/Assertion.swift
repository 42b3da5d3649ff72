import CountersignGate
import CountersignHTTP
import CountersignSchemes
import CountersignSeal
import CountersignWire

/// What the gateway found out about a request, signed for the backend, so that one that can be reached another way can
/// tell: a JWT (RFC 7519) in compact form (RFC 7515 §7.1) under Ed25519 (RFC 8037 §3.1).
enum Assertion {
    /// Seconds from `iat` to `exp`.
    static let lifetime: Int64 = 60

    /// The claims. `htm` and `htu` bind it to one request: the method, and the request target exactly as it is forwarded,
    /// query included (not a URI as in RFC 9449: a backend behind more proxies does not know under which name it was called).
    static func claims(
        for request: Request, _ caller: Caller, from client: String, _ event: EventID, issuer: String, audience: String,
        at now: Int64
    ) -> [UInt8] {
        let release = caller.release
        let head = request.head.span
        var claims = JSONLine()
        claims.add("iss", issuer)
        claims.add("aud", audience)
        claims.add("app", release.app)
        claims.add("release", release.id.description)
        claims.add("platform", release.platform)
        claims.add("version", release.version)
        claims.add("scheme", caller.schemeName)
        if let session = caller.session {
            claims.add("sub", session.account.subject)
            claims.add("sid", session.id.description)
        }
        claims.add("client", client)
        claims.add("iat", Int(now))
        claims.add("exp", Int(now + lifetime))
        claims.add("jti", event.bytes.span)
        claims.add("htm", head.extracting(request.method.range))
        claims.add("htu", head.extracting(request.target.range))
        add(BodyClaim(of: request, caller.body), to: &claims)
        claims.end()
        return claims.bytes
    }

    private static func add(_ body: BodyClaim, to claims: inout JSONLine) {
        switch body {
        case .sha256(let digest): claims.add("body_sha256", Base64.encode(digest.span, .url))
        case .sha512(let digest): claims.add("body_sha512", Base64.encode(digest.span, .url))
        case .open: claims.add("body", "open")
        }
    }
}

/// What an assertion says of the body.
private enum BodyClaim {
    case sha256(ShortBytes)
    case sha512(ShortBytes)
    /// It streams, and the caller's signature says nothing of it that a backend could check.
    case open

    init(of request: Request, _ signed: BodyExpectation) {
        // A digest that the signature covers was checked, or will be before the last bytes go: hashing again tells no more.
        switch signed {
        case .digests(let short?, _): self = .sha256(short)
        case .digests(nil, let long?) where !request.isBodyWhole: self = .sha512(long)
        case _ where request.isBodyWhole: self = .sha256(ShortBytes(SHA256.digest(request.body.span)))
        default: self = .open
        }
    }
}

/// Signs assertions, for one issuer and audience.
struct Asserter {
    private let keys: AssertionKeys
    private let issuer: String
    private let audience: String

    init(_ keys: AssertionKeys, issuer: String, audience: String) {
        self.keys = keys
        self.issuer = issuer
        self.audience = audience
    }

    /// Appends the `Countersign-Assertion` line. `unavailable` where the keys cannot be read: nothing goes on unsigned.
    func append(
        for request: Request, _ caller: Caller, from client: String, _ event: EventID, at now: Int64,
        to lines: inout [UInt8]
    ) throws(Refusal) {
        let edition: AssertionKeys.Edition
        do throws(Fault) {
            edition = try keys.latest()
        } catch {
            throw Refusal(.unavailable, "assertion keys: \(error.message)")
        }
        let claims = Assertion.claims(
            for: request, caller, from: client, event, issuer: issuer, audience: audience, at: now)
        lines.append(contentsOf: "Countersign-Assertion: ".utf8)
        let start = lines.count
        lines.append(contentsOf: edition.header)
        lines.append(UInt8(ascii: "."))
        lines.append(contentsOf: Base64.encode(claims.span, .url).utf8)
        let signature = edition.signer.sign(lines.span.extracting(start...))
        lines.append(UInt8(ascii: "."))
        lines.append(contentsOf: Base64.encode(signature.span, .url).utf8)
        lines.append(contentsOf: "\r\n".utf8)
    }
}
