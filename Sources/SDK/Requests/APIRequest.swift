import CountersignClient
import CountersignMemory
import CountersignTransport
import CountersignWire

#if canImport(FoundationEssentials)
    import FoundationEssentials
#else
    import Foundation
#endif

/// A request as the app describes it, without its proof. The client adds signature, nonce and token.
public struct APIRequest: Sendable {
    /// In whose name a request is made.
    public enum Caller: Sendable, Hashable {
        /// The signed-in account.
        case account
        /// The app itself, signed with its release key alone: for routes that do not need a login.
        case app
    }

    /// The request's method.
    public var method: APIMethod
    /// A path with its query, which begins with `/` and is relative to the client's base URL; or a whole URL
    /// below it. Percent-encoded: the client signs and sends exactly these bytes.
    public var path: String
    /// The fields, except those that the client makes itself. Each is signed.
    public var fields: [HeaderField]
    /// What it carries.
    public var body: Body
    /// In whose name.
    public var caller = Caller.account
    /// Lets the server recognize a second copy of this request; 1 to 256 visible characters. If it is nil,
    /// each call of the client draws one for methods that may have effects. Set it if the request must
    /// outlive the call: store it before the request is sent, and use it again after a restart; the server
    /// then executes the request once, for 24 hours.
    public var idempotencyKey: String?

    /// `path` as above.
    public init(_ method: APIMethod, _ path: String, fields: [HeaderField] = [], body: Body = .none) {
        self.method = method
        self.path = path
        self.fields = fields
        self.body = body
    }

    /// Reads the resource at `path`.
    public init(_ path: String) { self.init(.get, path) }

    /// `url` lies below the client's base URL.
    public init(_ method: APIMethod, _ url: URL, fields: [HeaderField] = [], body: Body = .none) {
        self.init(method, url.absoluteString, fields: fields, body: body)
    }

    /// Replaces every field of that name, compared without case.
    public mutating func set(_ name: String, _ value: String) {
        fields.removeAll { $0.isNamed(name) }
        fields.append(HeaderField(name, value: value))
    }

    /// The first field of that name, compared without case, where its value is UTF-8.
    public func value(of name: String) -> String? { fields.text(of: name) }

    /// Whether the server can recognize a copy of it.
    var isKeyed: Bool { idempotencyKey != nil || value(of: "idempotency-key") != nil }
}

extension [HeaderField] {
    func text(of name: String) -> String? {
        first { $0.isNamed(name) }.flatMap { String(utf8: $0.value) }
    }
}

extension APIRequest {
    /// What a request carries. The kind says whether it can be sent again: after a refresh, a lost response
    /// or a corrected clock.
    ///
    /// The signature covers each body's SHA-256, so the digest must be known before the first byte is sent.
    public enum Body: Sendable {
        /// No body.
        case none
        /// All of it, in memory.
        case bytes([UInt8])
        /// A file, read once for its digest and once for each copy that is sent. The server refuses a file
        /// that changes in between.
        case file(path: String)
        /// A stream that can be created again; created once for its digest and once for each copy that is
        /// sent.
        case replayable(ReplayableBody)
        /// A stream that can be read once, and is never sent twice. `sha256` is its digest, 32 bytes: an app
        /// that does not know it writes the stream to a file first. Its length must be known, too.
        case once(OnceBody, sha256: [UInt8])
    }
}

extension APIRequest {
    /// The same request with these parameters at the end of its query, in order, percent-encoded:
    /// `["q": "crème brûlée"]`.
    public func adding(query: KeyValuePairs<String, String>) -> APIRequest {
        guard !query.isEmpty else { return self }
        let pairs = query.map { "\(APIRequest.encoded($0.key))=\(APIRequest.encoded($0.value))" }
        var request = self
        request.path += (path.contains("?") ? "&" : "?") + pairs.joined(separator: "&")
        return request
    }

    /// All but unreserved characters as `%XX`; a space too, since only some servers read `+` as one. Source:
    /// RFC 3986 §2.1.
    private static func encoded(_ text: String) -> String {
        var bytes: [UInt8] = []
        let plain = Array(text.utf8)
        PercentEncoding.encode(plain.span, into: &bytes)
        return String(decoding: bytes, as: UTF8.self)
    }
}

/// A request's method. Source: RFC 9110 §9.
public struct APIMethod: Sendable, Hashable, CustomStringConvertible {
    /// In the case in which it is sent and signed.
    public let description: String

    /// A custom method; upper case by convention, and compared with case.
    public init(_ name: String) { description = name }

    /// Reads a resource.
    public static let get = APIMethod("GET")
    /// Reads the fields alone.
    public static let head = APIMethod("HEAD")
    /// Submits content.
    public static let post = APIMethod("POST")
    /// Replaces a resource.
    public static let put = APIMethod("PUT")
    /// Changes part of a resource.
    public static let patch = APIMethod("PATCH")
    /// Removes a resource.
    public static let delete = APIMethod("DELETE")
    /// Asks which methods are allowed.
    public static let options = APIMethod("OPTIONS")

    /// Whether the method may have effects: the client adds an idempotency key. Source: docs/protocol.md,
    /// "Idempotent requests".
    var isUnsafe: Bool { !Draft.isSafe(description) }
}

/// A request with its signature, for any HTTP stack: sent as it stands, once, within a minute.
///
/// Any change after signing (an added field, another encoding of the query) makes the server refuse it. The
/// sender interprets the response; ``CountersignClient/confirmSession()`` renews an expired token, and the
/// app then signs the request anew.
public struct SignedRequest: Sendable {
    /// In the case in which it was signed.
    public let method: APIMethod
    /// The whole URL, percent-encoded as it was signed.
    public let url: String
    /// The fields of the request and of its signature. `Host` and `Content-Length` follow from the URL and
    /// the body.
    public let fields: [HeaderField]
    /// What it carries; its digest is signed.
    public let body: APIRequest.Body

    /// From its parts, for code that signs in another way for another kind of server.
    public init(method: APIMethod, url: String, fields: [HeaderField], body: APIRequest.Body) {
        self.method = method
        self.url = url
        self.fields = fields
        self.body = body
    }
}
