import CountersignWire

/// One covered component of an HTTP message signature. Source: RFC 9421 §2.
struct Component: BitwiseCopyable, Equatable {
    enum Kind: UInt8 {
        case method, targetURI, authority, scheme, requestTarget, path, query
        case field
    }

    var kind: Kind
    /// Its identifier as received, quotes included, in `Request.head`.
    var identifier: Slice
    /// The field's name, without quotes; empty for derived components.
    var name: Slice
}
