import CountersignWire

extension MessageSignatures {
    /// The signature base. Source: RFC 9421 §2.5.
    package func spell(_ claim: Claim, _ request: Request, _ workspace: inout Workspace) throws(Refusal) {
        var text = workspace.text.takeBytes()
        for index in workspace.signature.components.range {
            let component = workspace.components[index]
            text.append(request.head.span.extracting(component.identifier.range))
            text.append(": ")
            value(of: component, request, into: &text)
            text.append(UInt8(ascii: "\n"))
        }
        text.append("\"@signature-params\": ")
        text.append(request.head.span.extracting(workspace.signature.parameters.range))
        workspace.text.put(back: &text, secretAt: 0)
    }

    /// Source: RFC 9421 §2.1 for fields, §2.2 for what is derived.
    private func value(
        of component: Component, _ request: Request, into text: inout ByteBuffer
    ) {
        let head = request.head.span
        switch component.kind {
        case .method: text.append(head.extracting(request.method.range))
        case .authority: authority(of: request, into: &text)
        case .scheme: text.append(request.transport == .tls ? "https" : "http")
        case .requestTarget: text.append(head.extracting(request.target.range))
        case .targetURI:
            text.append(request.transport == .tls ? "https://" : "http://")
            authority(of: request, into: &text)
            text.append(head.extracting(request.target.range))
        case .path:
            if request.path.isEmpty { text.append(UInt8(ascii: "/")) }
            text.append(head.extracting(request.path.range))
        case .query:
            text.append(UInt8(ascii: "?"))
            if let query = request.query { text.append(head.extracting(query.range)) }
        case .field:
            text.append(head.extracting(request.fields[Int(component.firstLine)].value.range))
            if component.lines > 1 { otherLines(of: component, request, into: &text) }
        case .unsupported: break
        }
    }

    private func otherLines(
        of component: Component, _ request: Request, into text: inout ByteBuffer
    ) {
        let name = request.head.span.extracting(component.name.range)
        for field in request.fields[(Int(component.firstLine) + 1)...] {
            guard request.head.span.extracting(field.name.range).matches(name) else { continue }
            text.append(", ")
            text.append(request.head.span.extracting(field.value.range))
        }
    }

    /// Lower-case, without the port that goes without saying. Source: RFC 9421 §2.2.3.
    private func authority(of request: Request, into text: inout ByteBuffer) {
        let host = Authority.normalised(
            request.head.span.extracting(request.authority.range), without: request.transport.defaultPortSuffix)
        for index in 0..<host.count { text.append(ASCII.lowercased(host[index])) }
    }
}
