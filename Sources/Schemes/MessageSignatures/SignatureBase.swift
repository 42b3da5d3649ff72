import CountersignWire

/// The signature base. Source: RFC 9421 §2.5.
struct SignatureBase {
    /// The message that bears the signature.
    let message: Request
    /// The one that derived components, and those with `req`, are taken from: on a request, itself.
    let request: Request
    /// Of a response; 0 on a request.
    var status = 0

    func spell(_ workspace: inout Workspace) throws(Refusal) {
        var text = workspace.text.takeBytes()
        var scratch = ByteBuffer()
        do throws(Refusal) {
            for index in workspace.signature.components.range {
                let component = workspace.components[index]
                text.append(message.head.span.extracting(component.identifier.range))
                text.append(": ")
                if component.parameters.isEmpty {
                    value(of: component, into: &text)
                } else {
                    try value(ofParametrised: component, into: &text, &scratch)
                }
                text.append(UInt8(ascii: "\n"))
            }
        } catch {
            workspace.text.put(back: &text, secretAt: 0)
            throw error
        }
        text.append("\"@signature-params\": ")
        text.append(message.head.span.extracting(workspace.signature.parameters.range))
        workspace.text.put(back: &text, secretAt: 0)
    }

    /// Source: RFC 9421 §2.1 for fields, §2.2 for what is derived.
    private func value(of component: Component, into text: inout ByteBuffer) {
        switch component.kind {
        case .field: append(component, of: message, to: &text)
        case .status: text.append(decimal: Int64(status))
        default: derived(component.kind, into: &text)
        }
    }

    private func value(
        ofParametrised component: Component, into text: inout ByteBuffer, _ scratch: inout ByteBuffer
    ) throws(Refusal) {
        let source = component.parameters.contains(.request) ? request : message
        switch component.kind {
        case .queryParam:
            let name = message.head.span.extracting(component.argument.range)
            try QueryParameter.append(named: name, of: request, to: &text)
        case .field:
            if component.parameters.contains(.wrapped) {
                appendWrapped(component, of: source, to: &text)
            } else if component.parameters.contains(.key) {
                try appendMember(component, of: source, to: &text, &scratch)
            } else if component.parameters.contains(.structured) {
                try appendStructured(component, of: source, to: &text, &scratch)
            } else {
                append(component, of: source, to: &text)
            }
        default: derived(component.kind, into: &text)
        }
    }

    private func derived(_ kind: Component.Kind, into text: inout ByteBuffer) {
        let head = request.head.span
        switch kind {
        case .method: text.append(head.extracting(request.method.range))
        case .authority: authority(into: &text)
        case .scheme: text.append(request.transport == .tls ? "https" : "http")
        case .requestTarget: text.append(head.extracting(request.requestTarget.range))
        case .targetURI:
            text.append(request.transport == .tls ? "https://" : "http://")
            authority(into: &text)
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
    private func authority(into text: inout ByteBuffer) {
        let host = Authority.normalised(
            request.head.span.extracting(request.authority.range), without: request.transport.defaultPortSuffix)
        for index in 0..<host.count { text.append(ASCII.lowercased(host[index])) }
    }
}

extension MessageSignatures {
    package func spell(_ claim: Claim, _ request: Request, _ workspace: inout Workspace) throws(Refusal) {
        try SignatureBase(message: request, request: request).spell(&workspace)
    }
}
