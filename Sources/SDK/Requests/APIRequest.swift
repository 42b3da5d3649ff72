import CountersignMemory
import CountersignTransport

#if canImport(FoundationEssentials)
    import FoundationEssentials
#else
    import Foundation
#endif

/// A request as an app means it: what is asked for, and not yet how it is proven. Signing, nonces and tokens are the client's.
public struct APIRequest: Sendable {
    /// In whose name a request is made.
    public enum Caller: Sendable, Hashable {
        /// Who is signed in.
        case account
        /// The app itself, signed with its release key alone: for routes that are open to people who are not signed in.
        case app
    }

    /// What is to be done.
    public var method: APIMethod
    /// A path with its query, which begins with `/` and is taken below the client's base URL; or a whole URL that lies there.
    /// Percent-encoded: it is signed and sent in these very bytes.
    public var path: String
    /// All but those that the client makes itself. Each is signed.
    public var fields: [HeaderField]
    /// What it carries.
    public var body: Body
    /// In whose name.
    public var caller = Caller.account
    /// What tells a second copy of this wish from a second wish; 1 to 256 visible characters. Where it is nil, each call of
    /// the client draws one for methods that may change something. Set it where a wish outlives the call: kept before the
    /// request is sent, and given again after a restart, it is done once all the same, for 24 hours.
    public var idempotencyKey: String?

    /// `path` as above.
    public init(_ method: APIMethod, _ path: String, fields: [HeaderField] = [], body: Body = .none) {
        self.method = method
        self.path = path
        self.fields = fields
        self.body = body
    }

    /// Reads what is at `path`.
    public init(_ path: String) { self.init(.get, path) }

    /// `url` lies below the client's base URL.
    public init(_ method: APIMethod, _ url: URL, fields: [HeaderField] = [], body: Body = .none) {
        self.init(method, url.absoluteString, fields: fields, body: body)
    }

    /// Replaces every field of that name, compared without case.
    public mutating func set(_ name: String, _ value: String) {
        fields.removeAll { $0.name.lowercased() == name.lowercased() }
        fields.append(HeaderField(name, value))
    }

    /// The first field of that name, compared without case, where its value is UTF-8.
    public func value(of name: String) -> String? { fields.text(of: name) }
}

extension [HeaderField] {
    func text(of name: String) -> String? {
        first { $0.name.lowercased() == name.lowercased() }.flatMap { String(utf8: $0.value) }
    }
}
