import CountersignWire

/// What a request's head may contain beyond the minimum that every server reads the same way.
public struct HeadRules: Sendable, Equatable {
    /// What the engine does with fields whose names contain an underscore. CGI-style backends turn `-` into
    /// `_`, and so confuse `content_type` with `content-type`.
    public enum UnderscoreFields: String, Sendable, CaseIterable {
        /// The parser removes the field; a signature that covers it fails.
        case drop
        /// The field is forwarded unchanged; a CGI-style backend may confuse it with another.
        case keep
        /// The parser refuses the request as `malformed`.
        case refuse
    }

    /// The default is ``UnderscoreFields/drop``.
    public var underscoreFields = UnderscoreFields.drop
    /// Methods to accept in addition to those of 1 to 32 upper-case letters: names with other characters,
    /// or `TRACE`. Never `CONNECT`.
    public var extraMethods: [String] = []
    /// The authority of an HTTP/1.0 request that names none; nil refuses such a request.
    package var defaultAuthority: String?

    /// The rules that `serve` starts with.
    public init() {}

    /// Whether `name` may be one of ``extraMethods``: a token of 1 to 32 characters other than `CONNECT`.
    public static func isExtraMethod(_ name: String) -> Bool {
        let bytes = Array(name.utf8)
        return (1...32).contains(bytes.count) && bytes.allSatisfy(OctetClass.isToken) && name != "CONNECT"
    }

    /// Whether the bytes at `slice` are a method that the settings add.
    func adds(_ method: ByteRange, of bytes: Span<UInt8>) -> Bool {
        extraMethods.contains { name in
            let name = name.utf8
            return name.count == method.count && zip(name, method.range).allSatisfy { $0 == bytes[$1] }
        }
    }
}

/// Changes to a request's head whose result another client could have sent, so that the components after
/// the parser (gate, log, forwarding) need no rule for these cases. All are rare; none is on the usual
/// path.
extension Request {
    /// Removes all fields whose names contain an underscore.
    mutating func removeFieldsWithUnderscores(limit: Int) throws(Refusal) {
        guard let first = fields.first else { return }
        var lines = Array(head[..<Int(first.name.start)])
        for (index, field) in fields.enumerated()
        where !head[field.name.range].contains(OctetClass.underscore) {
            let end = index + 1 < fields.count ? Int(fields[index + 1].name.start) : head.count - 2
            lines += head[Int(field.name.start)..<end]
        }
        let start = Int(first.name.start)
        lines += [OctetClass.carriageReturn, OctetClass.lineFeed]
        head = lines
        fields.removeAll(keepingCapacity: true)
        try FieldLines.parse(lines.span, from: start, to: lines.count, limit: limit, into: &fields)
    }

    /// Adds the `Host` field, which HTTP/1.0 does not require and HTTP/1.1 to the backend does.
    mutating func addHost(_ authority: some Sequence<UInt8>) {
        let start = head.count - 2
        head.removeLast(2)
        head += "host: ".utf8
        let valueStart = head.count
        head += authority
        fields.append(
            Field(
                name: ByteRange(from: start, to: start + 4),
                value: ByteRange(from: valueStart, to: head.count)))
        head += "\r\n\r\n".utf8
    }

    /// Clears the request and keeps its buffers, so that the next request on the connection needs no
    /// allocation.
    package mutating func reset() {
        head.removeAll(keepingCapacity: true)
        fields.removeAll(keepingCapacity: true)
        resetValues()
    }

    /// Clears all but `head` and `fields`.
    mutating func resetValues() {
        if !body.isEmpty { body = [] }
        method = .empty
        target = .empty
        absoluteAuthority = .empty
        path = .empty
        query = nil
        authority = .empty
        framing = .none
        hopByHopFields = FieldMask()
        isBodyWhole = true
        minorVersion = 1
    }
}

/// What the engine must know of a request's method. Source: RFC 9110 §9.
struct MethodTraits: BitwiseCopyable {
    /// A response to HEAD has no body.
    private(set) var isHEAD = false
    /// Whether a request of this method may be sent a second time if the connection closes before the
    /// response begins: GET, HEAD and OPTIONS, which are safe.
    private(set) var isRepeatable = false

    init() {}

    /// `request` is not changed; as an `inout` argument, the connection's is read where it is.
    init(of request: inout Request) {
        let method = request.head.span.extracting(request.method.range)
        switch method.count {
        case 3: isRepeatable = method.matches("GET")
        case 4:
            isHEAD = method.matches("HEAD")
            isRepeatable = isHEAD
        case 7: isRepeatable = method.matches("OPTIONS")
        default: break
        }
    }
}
