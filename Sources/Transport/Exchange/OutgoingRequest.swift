import CountersignMemory
import CountersignTrust
import CountersignWire

/// A header field.
public struct HeaderField: Sendable, Hashable {
    /// In the case in which it is sent; compared without it.
    public var name: String
    /// Without white space around it.
    public var value: [UInt8]

    /// A field from texts.
    public init(_ name: String, value: String) { self.init(name, bytes: Array(value.utf8)) }

    /// A field whose value may be other than UTF-8.
    public init(_ name: String, bytes: [UInt8]) {
        self.name = name
        value = bytes
    }

    /// Whether it is called that, in whatever case.
    func isNamed(_ other: String) -> Bool {
        name.utf8.elementsEqual(other.utf8) { ASCII.lowercased($0) == ASCII.lowercased($1) }
    }
}

/// A request that goes out as it stands: what was signed is what is sent, to the byte.
public struct OutgoingRequest: Sendable {
    /// In the case in which it is sent.
    public var method: String
    /// Whom it goes to.
    public var origin: Origin
    /// Path and query, origin form, percent-encoded as they were signed. Source: RFC 9112 §3.2.1.
    public var target: [UInt8]
    /// The `Host` field's value.
    public var authority: String
    /// All but `Host` and those that say where the body ends, which follow from the rest. In this order.
    public var fields: [HeaderField]
    /// What it carries.
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
    /// What must not be given, because it follows from the body, or is between two neighbours only.
    private static let derivedFields = [
        "host", "content-length", "transfer-encoding", "connection", "keep-alive", "te", "trailer", "upgrade",
        "expect",
        "proxy-authorization", "proxy-connection",
    ]

    /// What is wrong with it; nil where nothing is. A line break in a value would be a second field, or a
    /// second request. Source: RFC 9110 §5.5, §5.6.2; RFC 9112 §3.
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
                    UInt8(ascii: "0")...UInt8(ascii: "9"):
                    true
                default: "!#$%&'*+-.^_`|~".utf8.contains(byte)
                }
            }
    }
}

/// What a request carries.
public enum RequestBody: Sendable {
    /// No body, and no field that says how long it is.
    case none
    /// All of it, in memory.
    case bytes([UInt8])
    /// A stream that can be had anew, so that the request can be sent again.
    case replayable(ReplayableBody)
    /// A stream that is used up by being sent: a request with one is never sent twice.
    case once(OnceBody)
}

/// How long a streamed body is.
public enum BodyLength: Sendable, Hashable {
    /// In bytes. A stream with more or fewer breaks the request off.
    case bytes(Int)
    /// Sent in chunks. Source: RFC 9112 §7.1.
    case unknown
}

/// Hands a stream's pieces to what takes them, no faster than it does.
package typealias BodyWriter =
    @Sendable (_ take: @Sendable ([UInt8]) async throws -> Void) async throws -> Void

/// A body from a stream that can be made again: a file, a generator.
public struct ReplayableBody: Sendable {
    package let length: BodyLength
    /// Reads the stream once.
    package let write: BodyWriter

    /// `make` is called once for each time the body is sent, when the connection stands; the sequence's
    /// pieces are sent as they come. What it throws breaks the request off.
    public init<Pieces: AsyncSequence & Sendable>(
        _ length: BodyLength, make: @escaping @Sendable () -> Pieces
    ) where Pieces.Element == [UInt8] {
        self.length = length
        write = { take in
            for try await piece in make() { try await take(piece) }
        }
    }
}

/// A body from a stream that is gone once it was read: a camera, a pipe.
public final class OnceBody: Sendable {
    package let length: BodyLength
    private let unused: Locked<BodyWriter?>

    /// The sequence is read when the connection stands; a request that never came that far leaves it as it
    /// is.
    public init<Pieces: AsyncSequence & Sendable>(_ length: BodyLength, pieces: Pieces)
    where Pieces.Element == [UInt8] {
        self.length = length
        let write: BodyWriter = { take in
            for try await piece in pieces { try await take(piece) }
        }
        unused = Locked(write)
    }

    /// The stream, for the first caller.
    package func take() -> BodyWriter? {
        unused.with { writer in
            defer { writer = nil }
            return writer
        }
    }

    /// Whether it was read, in part or whole.
    public var isUsedUp: Bool { unused.with { $0 == nil } }
}
