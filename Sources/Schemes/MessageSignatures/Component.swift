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
    /// As the signature base writes it, quotes and all, in `Workspace.canonical`.
    var identifier: Slice
    /// Between the quotes.
    var name: Slice
    /// The lines of a field: how many, and the index of the first.
    var lines: UInt16 = 0
    var firstLine: UInt16 = 0

    init(identifier: Slice, name: Slice, _ text: borrowing Span<UInt8>) {
        self.identifier = identifier
        self.name = name
        kind = Component.kind(of: text.extracting(name.range))
    }

    private static func kind(of name: borrowing Span<UInt8>) -> Kind {
        guard name.count > 0, name[0] == UInt8(ascii: "@") else { return .field }
        if name.matches("@method") { return .method }
        if name.matches("@authority") { return .authority }
        if name.matches("@path") { return .path }
        if name.matches("@query") { return .query }
        if name.matches("@target-uri") { return .targetURI }
        if name.matches("@scheme") { return .scheme }
        if name.matches("@request-target") { return .requestTarget }
        return .unsupported
    }
}
