import CountersignMemory
import CountersignTrust
import CountersignWire

/// A header field.
public struct HeaderField: Sendable, Hashable {
    /// Sent in this case; compared without case.
    public var name: String
    /// The value without surrounding white space.
    public var value: [UInt8]

    /// A field with a text value.
    public init(_ name: String, value: String) { self.init(name, bytes: Array(value.utf8)) }

    /// A field whose value need not be UTF-8.
    public init(_ name: String, bytes: [UInt8]) {
        self.name = name
        value = bytes
    }

    /// Whether the field has this name, compared without case.
    package func isNamed(_ other: String) -> Bool { ASCII.isSame(name, withoutCase: other) }
}

/// A request that the transport sends unchanged: the sent bytes are the signed bytes.
public struct OutgoingRequest: Sendable {
    /// The method, in the case in which it is sent.
    public var method: String
    /// The server that receives the request.
    public var origin: Origin
    /// Path and query in origin form, percent-encoded as they were signed. Source: RFC 9112 §3.2.1.
    public var target: [UInt8]
    /// The `Host` field's value.
    public var authority: String
    /// All fields in order, except `Host` and those that frame the body, which the transport adds.
    public var fields: [HeaderField]
    /// The body.
    public var body: RequestBody

    /// `target` is ASCII: a path that begins with `/`, and its query.
    public init(
        _ method: String, origin: Origin, target: String, fields: [HeaderField] = [],
        body: RequestBody = .none
    ) {
        self.method = method
        self.origin = origin
        self.target = Array(target.utf8)
        authority = origin.authority
        self.fields = fields
        self.body = body
    }
}

extension OutgoingRequest {
    /// Fields that a request must not contain: the transport derives them, or they are hop-by-hop.
    private static let derivedFields = [
        "host", "content-length", "transfer-encoding", "connection", "keep-alive", "te", "trailer", "upgrade",
        "expect",
        "proxy-authorization", "proxy-connection",
    ]

    /// Why the request is invalid; nil if it is valid. A line break in a value would start a second field or
    /// a second request. Source: RFC 9110 §5.5, §5.6.2; RFC 9112 §3.
    package var flaw: String? {
        guard OutgoingRequest.isToken(method) else { return "method: expected a token" }
        if method == "HEAD" || method == "CONNECT" || method == "TRACE" {
            guard method == "HEAD", case .none = body else {
                return "\(method): not sent with a body, or not sent at all"
            }
        }
        guard target.first == UInt8(ascii: "/"), target.allSatisfy({ $0 > 0x20 && $0 < 0x7F }) else {
            return "target: expected visible ASCII that begins with `/`"
        }
        guard !authority.isEmpty, authority.utf8.allSatisfy({ $0 > 0x20 && $0 < 0x7F }) else {
            return "authority: expected visible ASCII"
        }
        for field in fields {
            guard OutgoingRequest.isToken(field.name) else { return "field name: expected a token" }
            guard !OutgoingRequest.derivedFields.contains(where: field.isNamed) else {
                return "field `\(field.name)`: it follows from the rest of the request, and cannot be given"
            }
            guard field.value.allSatisfy({ $0 == 0x09 || ($0 >= 0x20 && $0 != 0x7F) }) else {
                return "field `\(field.name)`: a control character in its value"
            }
        }
        return nil
    }

    private static func isToken(_ text: String) -> Bool {
        !text.isEmpty
            && text.utf8.allSatisfy { byte in
                switch byte {
                case UInt8(ascii: "a")...UInt8(ascii: "z"), UInt8(ascii: "A")...UInt8(ascii: "Z"),
                    UInt8(ascii: "0")...UInt8(ascii: "9"), UInt8(ascii: "-"):
                    true
                default: "!#$%&'*+.^_`|~".utf8.contains(byte)
                }
            }
    }
}

/// The body of a request.
public enum RequestBody: Sendable {
    /// No body, and no field with its length.
    case none
    /// The whole body in memory.
    case bytes([UInt8])
    /// A stream that can be created again, so that the request can be sent again.
    case replayable(ReplayableBody)
    /// A stream that can be read once: the request is never sent twice.
    case once(OnceBody)
}

/// The length of a streamed body.
public enum BodyLength: Sendable, Hashable {
    /// In bytes. If the stream has more or fewer, the transport aborts the request.
    case bytes(Int)
    /// Sent in chunks. Source: RFC 9112 §7.1.
    case unknown
}

/// Passes the pieces of a stream to a receiver, at the receiver's speed.
package typealias BodyWriter =
    @Sendable (_ take: @Sendable ([UInt8]) async throws -> Void) async throws -> Void

/// A body from a stream that can be created again, such as a file or a generator.
public struct ReplayableBody: Sendable {
    package let length: BodyLength
    /// Reads the stream once.
    package let write: BodyWriter

    /// The transport calls `make` each time it sends the body, when the connection is established, and sends
    /// the pieces as they arrive. If the sequence throws, the transport aborts the request.
    public init<Pieces: AsyncSequence & Sendable>(
        _ length: BodyLength, make: @escaping @Sendable () -> Pieces
    ) where Pieces.Element == [UInt8] {
        self.length = length
        write = { take in
            for try await piece in make() { try await take(piece) }
        }
    }
}

/// A body from a stream that can be read once, such as a camera or a pipe.
public final class OnceBody: Sendable {
    package let length: BodyLength
    private let unused: Locked<BodyWriter?>

    /// The transport reads the sequence when the connection is established; a request that fails earlier
    /// leaves it unread.
    public init<Pieces: AsyncSequence & Sendable>(_ length: BodyLength, pieces: Pieces)
    where Pieces.Element == [UInt8] {
        self.length = length
        let write: BodyWriter = { take in
            for try await piece in pieces { try await take(piece) }
        }
        unused = Locked(write)
    }

    /// The stream for the first caller; nil for later ones.
    package func take() -> BodyWriter? {
        unused.with { writer in
            defer { writer = nil }
            return writer
        }
    }

    /// Whether reading has begun.
    public var isUsedUp: Bool { unused.with { $0 == nil } }
}
