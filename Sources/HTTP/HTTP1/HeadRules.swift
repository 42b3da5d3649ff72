import CountersignWire

/// What a request's head may hold beyond the smallest set that every server reads the same way.
public struct HeadRules: Sendable, Equatable {
    /// What becomes of fields whose names hold an underscore. CGI-style backends turn `-` into `_`, and then take
    /// `content_type` for `content-type`.
    public enum UnderscoreFields: String, Sendable, CaseIterable {
        /// The field is removed as the head is read; a signature that covers it fails.
        case drop
        /// The field stays as it is, and so does the backend's confusion.
        case keep
        /// The request is `malformed`.
        case refuse
    }

    /// By default dropped.
    public var underscoreFields = UnderscoreFields.drop
    /// Methods beside those of 1 to 32 upper-case letters: names with other characters, or `TRACE`. Never `CONNECT`.
    public var extraMethods: [String] = []
    /// The authority of an HTTP/1.0 request that names none; nil refuses such a request.
    package var defaultAuthority: String?

    /// The rules that `serve` starts with.
    public init() {}

    /// Whether `name` may be one of ``extraMethods``: a token that the default does not allow already.
    public static func isExtraMethod(_ name: String) -> Bool {
        let bytes = Array(name.utf8)
        return (1...32).contains(bytes.count) && bytes.allSatisfy(Octet.isToken) && name != "CONNECT"
    }

    /// Whether the bytes at `slice` are a method that the settings add.
    func adds(_ method: Slice, of bytes: Span<UInt8>) -> Bool {
        extraMethods.contains { name in
            let name = name.utf8
            return name.count == method.count && zip(name, method.range).allSatisfy { $0 == bytes[$1] }
        }
    }
}
