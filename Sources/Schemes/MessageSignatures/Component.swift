import CountersignWire

/// One covered component of an HTTP message signature. Source: RFC 9421 §2.
struct Component: BitwiseCopyable {
    enum Kind: UInt8 {
        case method, targetURI, authority, scheme, requestTarget, path, query
        case field
        /// A component that RFC 9421 has and we do not yet, or a parameter on one.
        case unsupported
    }

    var kind: Kind
    /// As the signature base writes it, quotes and all; of `Request.head`, like `name`.
    var identifier = Slice.empty
    /// Between the quotes.
    var name: Slice
    /// The lines of a field: how many, and the index of the first.
    var lines: UInt16 = 0
    var firstLine: UInt16 = 0

    init(_ name: Slice, _ text: borrowing Span<UInt8>) {
        self.name = name
        kind = Component.kind(of: text)
    }

    private static func kind(of name: borrowing Span<UInt8>) -> Kind {
        guard name.count > 0, name[0] == UInt8(ascii: "@") else { return .field }
        switch name.count {
        case 5 where name.matches("@path"): return .path
        case 6 where name.matches("@query"): return .query
        case 7 where name.matches("@method"): return .method
        case 7 where name.matches("@scheme"): return .scheme
        case 10 where name.matches("@authority"): return .authority
        case 11 where name.matches("@target-uri"): return .targetURI
        case 15 where name.matches("@request-target"): return .requestTarget
        default: return .unsupported
        }
    }
}
