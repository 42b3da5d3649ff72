import CountersignWire

/// HMAC-SHA256 over method, path and the app's own parameters, not over the time. Source: docs/protocol.md,
/// auth-v2.
package struct AuthV2: Scheme {
    package init() {}

    package var name: SchemeName { .authV2 }
    package var dialect: ResponseDialect { .problem }
    package var evidence: SchemeEvidence {
        SchemeEvidence(parameters: .auth)
    }

    package var coverage: Coverage {
        Coverage(
            covered: [.method, .path, .formParameters],
            uncovered: [.authority, .transport, .body, .otherFields, .formSpelling, .signatureParameters],
            weaknesses: [
                "the time is not signed: an old request with a new timestamp is accepted",
                "no parameter whose name begins with auth_ is signed",
                "equal calls have equal signatures at any time: a replay cannot be told from a second call",
                "values are not escaped: a=\"1&b=2\" signs like a=1, b=2",
                "values are decoded twice: a=%41 signs like a=A, and so does the path",
                "a body beside signed parameters in the query is not signed",
                "whether the parameters are in the query or in a form body is not signed",
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
                scheme: name, order: .asWritten, in: request, names: names, workspace: &workspace)
        else {
            return nil
        }
        let claim = try AuthClaim(workspace).claim(
            for: name, version: "2", keyNames: .clientIDOrKey, workspace: &workspace)
        claim.replay = .impossible
        if place == .query {
            try AuthParameters.refuseUnsignedForm(in: request)
            claim.body = .anything
        }
        return claim
    }

    /// Method, path and the parameters without those in `auth_`; path and parameters are decoded once more,
    /// as the reference server does it after it has joined them.
    package func writeStringToSign(for claim: Claim, of request: Request, into workspace: inout Workspace)
        throws(Refusal)
    {
        var text = workspace.text.takeBytes()
        text.append(request.head.span.extracting(request.method.range))
        text.append(UInt8(ascii: "\n"))
        var isWhole = AuthV2.decode(request.head.span.extracting(request.path.range), into: &text)
        text.append(UInt8(ascii: "\n"))
        var isFirst = true
        // Neither "&" nor "=" nor "[]" can be part of an escape, so each piece may be decoded for itself.
        for parameter in workspace.parameters where !parameter.isAboutSignature {
            if !isFirst { text.append(UInt8(ascii: "&")) }
            isFirst = false
            isWhole =
                AuthV2.decode(workspace.decoded.span.extracting(parameter.name.range), into: &text) && isWhole
            if parameter.isArray { text.append("[]") }
            text.append(UInt8(ascii: "="))
            isWhole =
                AuthV2.decode(workspace.decoded.span.extracting(parameter.value.range), into: &text)
                && isWhole
        }
        workspace.text.put(back: &text, secretAt: 0)
        guard isWhole else {
            throw Refusal(.malformed, detail: "%00 in the path or in a value that is decoded twice")
        }
    }

    /// As lenient as deployed decoders: an invalid escape stands for itself. False if the result contains a
    /// NUL, at which some decoders would stop.
    private static func decode(_ raw: borrowing Span<UInt8>, into text: inout ByteBuffer) -> Bool {
        var index = 0
        var isWhole = true
        while index < raw.count {
            let byte = raw[index]
            if byte == UInt8(ascii: "%"), let value = PercentEncoding.byte(in: raw, at: index + 1) {
                if value == 0 { isWhole = false }
                text.append(value)
                index += 3
            } else {
                text.append(byte == UInt8(ascii: "+") ? UInt8(ascii: " ") : byte)
                index += 1
            }
        }
        return isWhole
    }

    /// Adds the parameters in `auth_` to a form body where the draft has one, otherwise to the query.
    package func sign(_ draft: inout Draft, as credentials: Credentials, at: Int64, nonce: String)
        throws(Refusal)
    {
        var added: [UInt8] = []
        Form.append("auth_client_id", value: Array(credentials.keyID.description.utf8).span, to: &added)
        added += Array("&auth_timestamp=\(at)&auth_version=2".utf8)
        try AuthParameters.sign(&draft, adding: added, with: self, key: credentials.key)
    }
}

extension AuthV2: SchemeDefinition {
    package static var traits: SchemeTraits {
        SchemeTraits(
            replayNumber: 5, purpose: .legacy, defaultWindow: 12 * 3600, windowEnd: .excluded,
            replayDetection: .impossible, signedParameters: .authParameters)
    }

    package static var layout: SchemeLayout? {
        SchemeLayout(
            signature: [.parameter("auth_signature")],
            keyID: [.parameter("auth_client_id"), .parameter("auth_key")],
            encoding: .hexadecimal(bytes: 32),
            lines: .positional(["method", "path", "parameters"], then: .unnamed), firstParameterLine: 2)
    }
}
