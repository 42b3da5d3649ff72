import CountersignWire

/// How the lines of a field become one value. Source: RFC 9421 §2.1.
extension SignatureBase {
    /// The lines as they are, joined by a comma and a space.
    func append(_ component: Component, of source: Request, to text: inout ByteBuffer) {
        text.append(source.head.span.extracting(source.fields[Int(component.firstLine)].value.range))
        guard component.lines > 1 else { return }
        let name = message.head.span.extracting(component.name.range)
        for field in source.fields[(Int(component.firstLine) + 1)...] {
            guard source.head.span.extracting(field.name.range).matches(name) else { continue }
            text.append(", ")
            text.append(source.head.span.extracting(field.value.range))
        }
    }

    /// Each line as a byte sequence. Source: RFC 9421 §2.1.3.
    func appendWrapped(_ component: Component, of source: Request, to text: inout ByteBuffer) {
        let name = message.head.span.extracting(component.name.range)
        var isFirst = true
        for field in source.fields[Int(component.firstLine)...] {
            guard source.head.span.extracting(field.name.range).matches(name) else { continue }
            if !isFirst { text.append(", ") }
            isFirst = false
            text.append(UInt8(ascii: ":"))
            Base64.encode(source.head.span.extracting(field.value.range), .standard, into: &text)
            text.append(UInt8(ascii: ":"))
        }
    }

    /// One member of a dictionary, written anew. Source: RFC 9421 §2.1.2.
    func appendMember(
        _ component: Component, of source: Request, to text: inout ByteBuffer, _ scratch: inout ByteBuffer
    ) throws(Refusal) {
        scratch.clear()
        append(component, of: source, to: &scratch)
        let key = message.head.span.extracting(component.argument.range)
        let isFound: Bool
        do {
            isFound = try StructuredField.append(member: key, of: scratch.span, to: &text)
        } catch {
            throw problem(error, component)
        }
        guard isFound else {
            throw Refusal(
                .badSignature, "the signature covers \(identifier(component)), which the message does not have")
        }
    }

    /// The whole field, written anew. Source: RFC 9421 §2.1.1.
    func appendStructured(
        _ component: Component, of source: Request, to text: inout ByteBuffer, _ scratch: inout ByteBuffer
    ) throws(Refusal) {
        guard let kind = StructuredField.Kind.registered(for: message.head.span.extracting(component.name.range)) else {
            throw Refusal(
                .badSignature,
                "component \(identifier(component)): the type of this field is not known here; expected no sf")
        }
        scratch.clear()
        append(component, of: source, to: &scratch)
        do {
            try StructuredField.append(canonical: scratch.span, as: kind, to: &text)
        } catch {
            throw problem(error, component)
        }
    }

    private func problem(_ problem: StructuredField.Problem, _ component: Component) -> Refusal {
        Refusal(
            .badSignature,
            "component \(identifier(component)): expected \(problem.expected) at byte \(problem.at) of the field's value"
        )
    }

    private func identifier(_ component: Component) -> String {
        message.head.span.extracting(component.identifier.range).text
    }
}
