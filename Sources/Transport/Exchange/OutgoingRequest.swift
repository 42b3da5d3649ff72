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
    /// Whether the length of an empty body is sent: these methods have a body by their meaning. Source: RFC
    /// 9110 §8.6.
    var announcesEmptyBody: Bool {
        guard case .none = body else { return false }
        return method == "POST" || method == "PUT" || method == "PATCH"
    }

    /// Why the request is invalid; nil if it is valid. A line break in a value would start a second field or
    /// a second request. Source: RFC 9110 §5.5, §5.6.2; RFC 9112 §3.
    package var flaw: String? {
        guard method.isToken else { return "method: expected a token" }
        if method == "HEAD" || method == "CONNECT" || method == "TRACE" {
            guard method == "HEAD", case .none = body else {
                return "\(method): not sent with a body, or not sent at all"
            }
        }
        guard target.first == UInt8(ascii: "/"), target.isVisible else {
            return "target: expected visible ASCII that begins with `/`"
        }
        guard !authority.isEmpty, authority.hasBytes({ $0.isVisible }) else {
            return "authority: expected visible ASCII"
        }
        for field in fields {
            guard field.name.isToken else { return "field name: expected a token" }
            guard !field.isDerived else {
                return "field `\(field.name)`: it follows from the rest of the request, and cannot be given"
            }
            guard field.value.isFieldValue else {
                return "field `\(field.name)`: a control character in its value"
            }
        }
        return nil
    }
}

extension HeaderField {
    /// Whether a request must not contain it: the transport derives it, or it is hop-by-hop.
    fileprivate var isDerived: Bool {
        switch name.utf8.count {
        case 2: isNamed("te")
        case 4: isNamed("host")
        case 6: isNamed("expect")
        case 7: isNamed("trailer") || isNamed("upgrade")
        case 10: isNamed("connection") || isNamed("keep-alive")
        case 14: isNamed("content-length")
        case 16: isNamed("proxy-connection")
        case 17: isNamed("transfer-encoding")
        case 19: isNamed("proxy-authorization")
        default: false
        }
    }
}

extension String {
    /// Source: RFC 9110 §5.6.2.
    fileprivate var isToken: Bool { !isEmpty && hasBytes { $0.allSatisfy { $0.isTokenCharacter } } }

    /// Whether the UTF-8 meets a condition; without a copy if the text is stored as UTF-8.
    fileprivate func hasBytes(_ condition: (UnsafeBufferPointer<UInt8>) -> Bool) -> Bool {
        if let result = utf8.withContiguousStorageIfAvailable(condition) { return result }
        return Array(utf8).withUnsafeBufferPointer(condition)
    }
}

extension UInt8 {
    /// The characters of a token, a bit for each: `!#$%&'*+-.^_`|~`, letters and digits.
    fileprivate var isTokenCharacter: Bool {
        let half: UInt64 = self < 64 ? 0x03FF_6CFA_0000_0000 : 0x57FF_FFFF_C7FF_FFFE
        return self < 128 && half >> UInt64(self & 63) & 1 == 1
    }
}

extension [UInt8] {
    /// Whether all are visible ASCII.
    fileprivate var isVisible: Bool { withUnsafeBufferPointer { $0.isVisible } }

    /// Whether none is a control character, except tabs.
    fileprivate var isFieldValue: Bool {
        withUnsafeBytes { bytes in
            let ones: UInt64 = 0x0101_0101_0101_0101
            var index = 0
            // Eight at a time while there is no control character among them.
            while index + 8 <= bytes.count {
                let word = bytes.loadUnaligned(fromByteOffset: index, as: UInt64.self)
                let delete = word ^ ones &* 0x7F
                let low = (word &- ones &* 0x20) & ~word
                guard (low | (delete &- ones) & ~delete) & ones &* 0x80 == 0 else { break }
                index += 8
            }
            return bytes[index...].allSatisfy { $0 == 0x09 || ($0 >= 0x20 && $0 != 0x7F) }
        }
    }
}

extension UnsafeBufferPointer<UInt8> {
    fileprivate var isVisible: Bool { allSatisfy { $0 > 0x20 && $0 < 0x7F } }
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
