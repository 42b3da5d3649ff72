import CountersignWire

/// One covered component of an HTTP message signature. Source: RFC 9421 §2.
struct Component: BitwiseCopyable {
    enum Kind: UInt8 {
        case method, targetURI, authority, scheme, requestTarget, path, query
        /// One parameter of the query, named by `name`.
        case queryParam
        /// Of responses only.
        case status
        case field
        /// Begins with `@`, and is none of the above.
        case unknown
    }

    /// The parameters on a component. Source: RFC 9421 §2.1, §2.4, §6.5.2.
    struct Parameters: OptionSet, BitwiseCopyable {
        let rawValue: UInt8

        /// The field as a structured one, written anew.
        static let structured = Parameters(rawValue: 1 << 0)
        /// One member of a dictionary.
        static let key = Parameters(rawValue: 1 << 1)
        /// Each line of the field, wrapped as a byte sequence.
        static let wrapped = Parameters(rawValue: 1 << 2)
        /// Of the request that a response answers.
        static let request = Parameters(rawValue: 1 << 3)
        static let trailer = Parameters(rawValue: 1 << 4)
        static let name = Parameters(rawValue: 1 << 5)
        /// One that is not registered, came twice, or has a value of another kind.
        static let unknown = Parameters(rawValue: 1 << 6)
    }

    var kind: Kind
    var parameters: Parameters = []
    /// As the signature base writes it, quotes and all: a slice of ``ComponentList/text``, like `name` and
    /// `argument`.
    var identifier = ByteRange.empty
    /// Between the quotes.
    var name: ByteRange
    /// What begins the component's line of a signature base: a slice of ``ComponentList/Plan/labels``.
    var label = ByteRange.empty
    /// Which field that is.
    let known: FieldName
    /// What `key` or `name` says, between the quotes.
    var argument = ByteRange.empty
    /// The lines of a field: how many, and the index of the first.
    var lines: UInt16 = 0
    var firstLine: UInt16 = 0

    init(name: ByteRange, text: borrowing Span<UInt8>) {
        self.name = name
        kind = Component.kind(of: text)
        known = kind == .field ? FieldName(text) : .other
    }

    private static func kind(of name: borrowing Span<UInt8>) -> Kind {
        guard name.count > 0, name[0] == UInt8(ascii: "@") else { return .field }
        switch name.count {
        case 5 where name.matches("@path"): return .path
        case 6 where name.matches("@query"): return .query
        case 7 where name.matches("@method"): return .method
        case 7 where name.matches("@scheme"): return .scheme
        case 7 where name.matches("@status"): return .status
        case 10 where name.matches("@authority"): return .authority
        case 11 where name.matches("@target-uri"): return .targetURI
        case 12 where name.matches("@query-param"): return .queryParam
        case 15 where name.matches("@request-target"): return .requestTarget
        default: return .unknown
        }
    }

    /// Takes up one parameter of the identifier.
    mutating func addParameter(_ key: borrowing Span<UInt8>, value: StructuredField.BareItem) {
        let parameter = Component.parameter(named: key)
        let isNew = !parameters.contains(parameter)
        switch (parameter, value) {
        case (.key, .string(let text)) where isNew, (.name, .string(let text)) where isNew:
            argument = text
            parameters.insert(parameter)
        case (.structured, .boolean(true)) where isNew, (.wrapped, .boolean(true)) where isNew,
            (.request, .boolean(true)) where isNew, (.trailer, .boolean(true)) where isNew:
            parameters.insert(parameter)
        default: parameters.insert(.unknown)
        }
    }

    private static func parameter(named key: borrowing Span<UInt8>) -> Parameters {
        switch key.count {
        case 2 where key.matches("sf"): .structured
        case 2 where key.matches("bs"): .wrapped
        case 2 where key.matches("tr"): .trailer
        case 3 where key.matches("key"): .key
        case 3 where key.matches("req"): .request
        case 4 where key.matches("name"): .name
        default: .unknown
        }
    }

    /// Whether a field or the query has to be parsed for its value.
    var isParsed: Bool { kind == .queryParam || !parameters.isDisjoint(with: [.structured, .key]) }

    /// Whether this is the component that `other` is. The order of parameters makes no difference. Source:
    /// RFC 9421 §2.
    func isSame(as other: Component, in text: borrowing Span<UInt8>) -> Bool {
        guard kind == other.kind, parameters == other.parameters else { return false }
        return text.extracting(name.range).matches(text.extracting(other.name.range))
            && text.extracting(argument.range).matches(text.extracting(other.argument.range))
    }

    /// Why this cannot be part of a signature on a request or a response; nil where it can.
    func objection(on side: Side) -> StaticString? {
        if parameters.contains(.unknown) { return "has a parameter that is not known here, or one twice" }
        if parameters.contains(.trailer) { return "is of trailers, which are not forwarded" }
        if side == .request, parameters.contains(.request) { return "is for answers to a request" }
        if side == .request, kind == .status { return "is of responses" }
        if kind == .unknown { return "is not known here" }
        if parameters.contains(.name) != (kind == .queryParam) {
            return "takes a name if it is \"@query-param\", and else none"
        }
        if side == .response, kind != .status, kind != .field, !parameters.contains(.request) {
            return "is of requests: it needs the parameter req"
        }
        if kind == .status, parameters.contains(.request) { return "is of responses" }
        guard kind == .field || parameters.isDisjoint(with: [.structured, .key, .wrapped]) else {
            return "takes sf, key and bs if it is a field, and else not"
        }
        if parameters.contains(.wrapped), !parameters.isDisjoint(with: [.structured, .key]) {
            return "is either bytes or structured"
        }
        return nil
    }

    /// Which message bears the signature.
    enum Side { case request, response }
}
