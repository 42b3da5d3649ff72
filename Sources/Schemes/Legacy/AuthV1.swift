import CountersignWire

/// HMAC-SHA256 over method, path and parameters; also what Pusher's HTTP API speaks. Source:
/// docs/protocol.md, auth-v1.
package struct AuthV1: Scheme {
    package init() {}

    package var name: SchemeName { .authV1 }
    package var dialect: ResponseDialect { .problem }
    package var evidence: SchemeEvidence {
        SchemeEvidence(parameters: .auth)
    }

    package var coverage: Coverage {
        Coverage(
            covered: [.method, .path, .formParameters, .signatureParameters],
            uncovered: [.authority, .transport, .body, .otherFields, .formSpelling],
            weaknesses: [
                "values are not escaped: a=\"1&b=2\" signs like a=1, b=2",
                "a body beside signed parameters in the query is signed only where body_md5 says its MD5",
                "whether the parameters are in the query or in a form body is not signed",
                "the case of letters in parameter names is not signed",
                "two equal calls within a second have one signature",
            ])
    }

    package func detect(in request: Request, names: RequestParameterNames) -> SchemeDetection {
        AuthParameters.detect(name, names: names)
    }

    package func claim(
        in request: Request, names: RequestParameterNames, workspace: inout Workspace
    ) throws(Refusal) -> Claim? {
        guard
            let place = try AuthParameters.read(
                scheme: name, order: .lowerCased, in: request, names: names, workspace: &workspace)
        else {
            return nil
        }
        let claim = try AuthClaim(workspace).claim(
            for: name, version: "1.0", keyNames: .key, workspace: &workspace)
        claim.replay = .signature
        if place == .query { claim.body = try bodyExpectation(of: request, workspace: workspace) }
        return claim
    }

    /// Deployed clients send unsigned bodies; but a form in such a body would be a second set of parameters,
    /// which some backends prefer to the signed ones.
    private func bodyExpectation(
        of request: Request, workspace: borrowing Workspace
    ) throws(Refusal) -> BodyExpectation {
        let text = workspace.decoded.span
        for parameter in workspace.parameters where text.extracting(parameter.name.range).matches("body_md5")
        {
            guard let digest = Hex.decodeShort(text.extracting(parameter.value.range)), digest.count == 16,
                !parameter.isArray
            else { throw Refusal(.malformed, detail: "body_md5: expected 32 lower-case hexadecimal digits") }
            return .md5(digest)
        }
        try AuthParameters.refuseUnsignedForm(in: request)
        return .anything
    }

    /// Method, path as it was sent, and all parameters but `auth_signature`; nothing is escaped.
    package func writeStringToSign(for claim: Claim, of request: Request, into workspace: inout Workspace)
        throws(Refusal)
    {
        var text = workspace.text.takeBytes()
        text.append(request.head.span.extracting(request.method.range))
        text.append(UInt8(ascii: "\n"))
        text.append(request.head.span.extracting(request.path.range))
        text.append(UInt8(ascii: "\n"))
        var isFirst = true
        for parameter in workspace.parameters {
            let name = workspace.decoded.span.extracting(parameter.name.range)
            if parameter.isAboutSignature, !parameter.isArray, name.matches("auth_signature") { continue }
            if !isFirst { text.append(UInt8(ascii: "&")) }
            isFirst = false
            text.append(name)
            if parameter.isArray { text.append("[]") }
            text.append(UInt8(ascii: "="))
            text.append(workspace.decoded.span.extracting(parameter.value.range))
        }
        workspace.text.put(back: &text, secretAt: 0)
    }

    /// Adds the parameters in `auth_` to a form body where the draft has one; otherwise to the query, with
    /// the MD5 of a body beside it.
    package func sign(_ draft: inout Draft, as credentials: Credentials, at: Int64, nonce: String)
        throws(Refusal)
    {
        var added: [UInt8] = []
        Form.append("auth_key", value: Array(credentials.keyID.description.utf8).span, to: &added)
        added += Array("&auth_timestamp=\(at)&auth_version=1.0".utf8)
        if let streamed = draft.streamed {
            guard case .md5(let digest) = streamed.digest else {
                throw Refusal(.malformed, detail: "a body that streams: expected its MD5")
            }
            added += Array("&body_md5=\(Hex.encode(digest.span))".utf8)
        } else if !draft.body.isEmpty, !draft.request().hasFormType {
            added += Array("&body_md5=\(Hex.encode(AuthParameters.md5(draft.body.span).span))".utf8)
        }
        try AuthParameters.sign(&draft, adding: added, with: self, key: credentials.key)
    }
}

extension AuthV1: SchemeDefinition {
    package static var traits: SchemeTraits {
        SchemeTraits(
            replayNumber: 4, purpose: .legacy, defaultWindow: 600, windowEnd: .excluded,
            replayDetection: .perKey, signedParameters: .authParameters)
    }

    package static var layout: SchemeLayout? {
        SchemeLayout(
            signature: [.parameter("auth_signature")],
            keyID: [.parameter("auth_key")],
            encoding: .hexadecimal(bytes: 32),
            lines: .positional(["method", "path", "parameters"], then: .unnamed), firstParameterLine: 2)
    }
}
