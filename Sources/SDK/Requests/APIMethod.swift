/// What a request wants done. Source: RFC 9110 §9.
public struct APIMethod: Sendable, Hashable, CustomStringConvertible {
    /// In the case in which it is sent and signed.
    public let description: String

    /// A method of one's own; upper case by custom, and compared with case.
    public init(_ name: String) { description = name }

    /// Reads.
    public static let get = APIMethod("GET")
    /// Reads the fields alone.
    public static let head = APIMethod("HEAD")
    /// Hands something over.
    public static let post = APIMethod("POST")
    /// Puts something in its place.
    public static let put = APIMethod("PUT")
    /// Changes a part.
    public static let patch = APIMethod("PATCH")
    /// Removes.
    public static let delete = APIMethod("DELETE")
    /// Asks what may be asked.
    public static let options = APIMethod("OPTIONS")

    /// Whether it may change something: those get an idempotency key. Source: docs/protocol.md, "Doing once".
    var isUnsafe: Bool { !["GET", "HEAD", "OPTIONS", "TRACE"].contains(description) }
}
