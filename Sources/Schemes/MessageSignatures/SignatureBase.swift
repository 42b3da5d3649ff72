import CountersignWire

/// The signature base. Source: RFC 9421 §2.5.
///
/// `message` is the one that bears the signature, and `request` the one that derived components, and those
/// with `req`, are taken from: on a request, itself.
enum SignatureBase {
    /// `status` is that of a response; 0 on a request.
    static func write(
        of message: Request, request: Request, status: Int = 0, into workspace: inout Workspace
    ) throws(Refusal) {
        let part = workspace.part(SignatureInputBuffers.self)
        let list = part.buffers.list
        let plan = list.plan
        let labels = plan.labels
        var text = workspace.text.takeBytes()
        var scratch = ByteBuffer()
        do throws(Refusal) {
            for index in list.components.indices {
                let component = list.components[index]
                text.append(labels.span.extracting(component.label.range))
                if !component.parameters.isEmpty {
                    try appendValue(
                        ofParametrised: component, namedIn: list, of: message, request: request, to: &text,
                        scratch: &scratch)
                } else if component.kind == .field {
                    append(component, namedIn: list, of: message, to: &text)
                } else if component.kind == .status {
                    text.append(decimal: Int64(status))
                } else {
                    appendDerived(component.kind, of: request, to: &text)
                }
            }
        } catch {
            workspace.text.put(back: &text, secretAt: 0)
            throw error
        }
        text.append(labels.span.extracting(plan.lastLabel.range))
        text.append(message.head.span.extracting(part.buffers.input.parameters.range))
        workspace.text.put(back: &text, secretAt: 0)
    }

    /// Source: RFC 9421 §2.1 for fields, §2.2 for what is derived.
    private static func appendValue(
        ofParametrised component: Component, namedIn list: ComponentList, of message: Request,
        request: Request, to text: inout ByteBuffer, scratch: inout ByteBuffer
    ) throws(Refusal) {
        let source = component.parameters.contains(.request) ? request : message
        switch component.kind {
        case .queryParam:
            let words = list.text
            let name = words.span.extracting(component.argument.range)
            try QueryParameter.append(named: name, of: request, to: &text)
        case .field:
            if component.parameters.contains(.wrapped) {
                appendWrapped(component, namedIn: list, of: source, to: &text)
            } else if component.parameters.contains(.key) {
                try appendMember(component, namedIn: list, of: source, to: &text, scratch: &scratch)
            } else if component.parameters.contains(.structured) {
                try appendStructured(component, namedIn: list, of: source, to: &text, scratch: &scratch)
            } else {
                append(component, namedIn: list, of: source, to: &text)
            }
        default: appendDerived(component.kind, of: request, to: &text)
        }
    }

    static func appendDerived(
        _ kind: Component.Kind, of request: Request, to text: inout ByteBuffer
    ) {
        let head = request.head.span
        switch kind {
        case .method: text.append(head.extracting(request.method.range))
        case .authority: appendAuthority(of: request, to: &text)
        case .scheme: text.append(request.transport == .tls ? "https" : "http")
        case .requestTarget: text.append(head.extracting(request.requestTarget.range))
        case .targetURI:
            text.append(request.transport == .tls ? "https://" : "http://")
            appendAuthority(of: request, to: &text)
            text.append(head.extracting(request.target.range))
        case .path:
            if request.path.isEmpty { text.append(UInt8(ascii: "/")) }
            text.append(head.extracting(request.path.range))
        case .query:
            text.append(UInt8(ascii: "?"))
            if let query = request.query { text.append(head.extracting(query.range)) }
        case .queryParam, .status, .field, .unknown: break
        }
    }

    /// Lower-case, without the port that goes without saying. Source: RFC 9421 §2.2.3.
    private static func appendAuthority(of request: Request, to text: inout ByteBuffer) {
        let host = URIAuthority.normalised(
            request.head.span.extracting(request.authority.range),
            without: request.transport.defaultPortSuffix)
        text.append(lowercasing: host)
    }
}

extension MessageSignatures {
    package func writeStringToSign(for claim: Claim, of request: Request, into workspace: inout Workspace)
        throws(Refusal)
    {
        try SignatureBase.write(of: request, request: request, into: &workspace)
    }
}

/// How the lines of a field become one value. Source: RFC 9421 §2.1.
extension SignatureBase {
    /// The lines as they are, joined by a comma and a space.
    static func append(
        _ component: Component, namedIn list: ComponentList, of source: Request, to text: inout ByteBuffer
    ) {
        text.append(source.head.span.extracting(source.fields[Int(component.firstLine)].value.range))
        guard component.lines > 1 else { return }
        let words = list.text
        let name = words.span.extracting(component.name.range)
        for field in source.fields[(Int(component.firstLine) + 1)...] {
            guard source.head.span.extracting(field.name.range).matches(name) else { continue }
            text.append(", ")
            text.append(source.head.span.extracting(field.value.range))
        }
    }

    /// Each line as a byte sequence. Source: RFC 9421 §2.1.3.
    static func appendWrapped(
        _ component: Component, namedIn list: ComponentList, of source: Request, to text: inout ByteBuffer
    ) {
        let words = list.text
        let name = words.span.extracting(component.name.range)
        var isFirst = true
        for field in source.fields[Int(component.firstLine)...] {
            guard source.head.span.extracting(field.name.range).matches(name) else { continue }
            if !isFirst { text.append(", ") }
            isFirst = false
            text.append(UInt8(ascii: ":"))
            Base64.encode(source.head.span.extracting(field.value.range), as: .standard, into: &text)
            text.append(UInt8(ascii: ":"))
        }
    }

    /// One member of a dictionary, written anew. Source: RFC 9421 §2.1.2.
    static func appendMember(
        _ component: Component, namedIn list: ComponentList, of source: Request, to text: inout ByteBuffer,
        scratch: inout ByteBuffer
    ) throws(Refusal) {
        scratch.clear()
        append(component, namedIn: list, of: source, to: &scratch)
        let words = list.text
        let key = words.span.extracting(component.argument.range)
        let isFound: Bool
        do {
            isFound = try StructuredField.append(member: key, of: scratch.span, to: &text)
        } catch {
            throw refusal(for: error, component: component, list: list)
        }
        guard isFound else {
            throw Refusal(
                .badSignature,
                detail: "the signature covers \(list.identifier(component)), which the message does not have")
        }
    }

    /// The whole field, written anew. Source: RFC 9421 §2.1.1.
    static func appendStructured(
        _ component: Component, namedIn list: ComponentList, of source: Request, to text: inout ByteBuffer,
        scratch: inout ByteBuffer
    ) throws(Refusal) {
        let words = list.text
        guard
            let kind = StructuredField.Kind.registered(
                for: words.span.extracting(component.name.range))
        else {
            throw Refusal(
                .badSignature,
                detail:
                    "component \(list.identifier(component)): the type of this field is not known here; "
                    + "expected no sf"
            )
        }
        scratch.clear()
        append(component, namedIn: list, of: source, to: &scratch)
        do {
            try StructuredField.append(canonical: scratch.span, as: kind, to: &text)
        } catch {
            throw refusal(for: error, component: component, list: list)
        }
    }

    private static func refusal(for problem: ParseError, component: Component, list: ComponentList) -> Refusal
    {
        Refusal(
            .badSignature,
            detail: "component \(list.identifier(component)): \(problem) of the field's value")
    }

}

/// One parameter of the query, decoded and encoded again in one way. Source: RFC 9421 §2.2.8; WHATWG URL §5.
///
/// Stricter than there: bytes that are no UTF-8, which a browser's reader replaces, and escapes that are none
/// are refused, since several such values would be signed alike.
enum QueryParameter {
    /// Appends the value of the one parameter whose encoded name is `name`. A name that comes twice is
    /// refused, as the RFC has it: which one would be meant?
    static func append(
        named name: borrowing Span<UInt8>, of request: Request, to text: inout ByteBuffer
    ) throws(Refusal) {
        guard let query = request.query else { throw missing(name) }
        let bytes = request.head.span.extracting(query.range)
        var reader = Form.Reader()
        var plain = ByteBuffer()
        var encoded = ByteBuffer()
        var isFound = false
        do throws(ParseError) {
            while let pair = try reader.next(in: bytes) {
                plain.clear()
                encoded.clear()
                try append(pair.name, of: bytes, to: &encoded, scratch: &plain)
                guard encoded.span.matches(name) else { continue }
                guard !isFound else {
                    throw ParseError(offset: Int(pair.name.start), reason: "expected this name once")
                }
                isFound = true
                plain.clear()
                try append(pair.value, of: bytes, to: &text, scratch: &plain)
            }
        } catch {
            throw Refusal(
                .badSignature,
                detail: "@query-param: \(error) of the query")
        }
        guard isFound else { throw missing(name) }
    }

    private static func append(
        _ raw: ByteRange, of bytes: borrowing Span<UInt8>, to text: inout ByteBuffer,
        scratch plain: inout ByteBuffer
    ) throws(ParseError) {
        _ = try Form.decode(raw, of: bytes, into: &plain)
        guard plain.span.isUTF8 else { throw ParseError(offset: Int(raw.start), reason: "expected UTF-8") }
        for index in 0..<plain.count { PercentEncoding.append(form: plain.span[index], to: &text) }
    }

    private static func missing(_ name: borrowing Span<UInt8>) -> Refusal {
        Refusal(
            .badSignature,
            detail: "the signature covers the query parameter \(name.text), which the request does not have")
    }
}

extension Span<UInt8> {
    /// Whether the bytes are well-formed UTF-8.
    fileprivate var isUTF8: Bool {
        var isPlain = true
        for index in 0..<count where self[index] >= 0x80 { isPlain = false }
        return isPlain || firstIllFormedUTF8 == nil
    }
}

extension StructuredField.Kind {
    /// The registered type of the field with that lower-case name; nil if it is not a structured field or is
    /// not listed here. Source: IANA, Hypertext Transfer Protocol (HTTP) Field Name Registry, "Structured
    /// Type"; RFC 9421 §2.1.1: an implementation must not guess an unknown type.
    static func registered(for name: borrowing Span<UInt8>) -> StructuredField.Kind? {
        for (known, kind) in table where name.matches(known) { return kind }
        return nil
    }

    private static let table: [(StaticString, StructuredField.Kind)] = [
        ("accept-ch", .list), ("accept-signature", .dictionary), ("cache-status", .list),
        ("capsule-protocol", .item), ("cdn-cache-control", .dictionary), ("client-cert", .item),
        ("client-cert-chain", .list), ("content-digest", .dictionary),
        ("cross-origin-embedder-policy", .item),
        ("cross-origin-opener-policy", .item), ("origin-agent-cluster", .item), ("priority", .dictionary),
        ("proxy-status", .list), ("repr-digest", .dictionary), ("signature", .dictionary),
        ("signature-input", .dictionary), ("want-content-digest", .dictionary),
        ("want-repr-digest", .dictionary),
    ]
}
