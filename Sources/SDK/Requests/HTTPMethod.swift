/// What a request wants done. Source: RFC 9110 §9.
public struct HTTPMethod: Sendable, Hashable, CustomStringConvertible {
    /// In the case in which it is sent and signed.
    public let description: String

    /// A method of one's own; upper case by custom, and compared with case.
    public init(_ name: String) { description = name }

    /// Reads.
    public static let get = HTTPMethod("GET")
    /// Reads the fields alone.
    public static let head = HTTPMethod("HEAD")
    /// Hands something over.
    public static let post = HTTPMethod("POST")
    /// Puts something in its place.
    public static let put = HTTPMethod("PUT")
    /// Changes a part.
    public static let patch = HTTPMethod("PATCH")
    /// Removes.
    public static let delete = HTTPMethod("DELETE")
    /// Asks what may be asked.
    public static let options = HTTPMethod("OPTIONS")

    /// Whether it may change something: those get an idempotency key. Source: docs/protocol.md, "Doing once".
    var isUnsafe: Bool { !["GET", "HEAD", "OPTIONS", "TRACE"].contains(description) }
}
