import CountersignWire

/// HMAC-SHA256 in fields of its own, over method, URL and the members of a JSON body, not over the time.
/// Source: docs/protocol.md, auth-v4.
package struct AuthV4: Scheme {
    package init() {}

    package var name: SchemeName { .authV4 }
    package var dialect: ResponseDialect { .problem }
    package var evidence: SchemeEvidence {
        SchemeEvidence(fields: FieldNames(.xAuthSignature, .xAuthVersion))
    }

    package var coverage: Coverage {
        Coverage(
            covered: [.method, .authority, .transport, .path, .query, .jsonMembers],
            uncovered: [.otherFields, .jsonSpelling, .signatureParameters],
            weaknesses: [
                "the time is not signed: an old request with a new timestamp is accepted",
                "equal calls have equal signatures at any time: a replay cannot be told from a second call",
                "values lose their type: null, \"\", [] and {} sign alike, true like 1, 7 like "
                    + "\"7\", [1] like \"[1]\"",
                "a body of {} signs like none",
                "the case of letters in the body's names is not signed",
                "where the app's public-url is set, it stands for authority and transport, whatever "
                    + "the request came to",
            ])
    }

    package func detect(in request: Request, names: RequestParameterNames) -> SchemeDetection {
        request.names.contains(.xAuthSignature) || request.names.contains(.xAuthVersion) ? .present : .absent
    }

    package func claim(
        in request: Request, names: RequestParameterNames, workspace: inout Workspace
    ) throws(Refusal) -> Claim? {
        guard detect(in: request, names: names) == .present else { return nil }
        let head = request.head.span
        guard let version = request.value(of: .xAuthVersion), request.matches(version, text: "4") else {
            throw Refusal(.malformed, detail: "X-Auth-Version: expected 4, once")
        }
        guard let signature = request.value(of: .xAuthSignature) else {
            throw Refusal(.unsigned, detail: "X-Auth-Signature: expected once")
        }
        guard let mac = Hex.decodeShort(head.extracting(signature.range)), mac.count == 32 else {
            throw Refusal(
                .badSignature, detail: "X-Auth-Signature: expected 64 lower-case hexadecimal digits")
        }
        guard let clientID = request.value(of: .xAuthClientID),
            let keyID = KeyID(head.extracting(clientID.range))
        else {
            throw Refusal(.unknownKey, detail: "X-Auth-Client-ID: expected 1 to 64 visible characters, once")
        }
        guard let timestamp = request.value(of: .xAuthTimestamp),
            let seconds = AuthClaim.seconds(head.extracting(timestamp.range))
        else { throw Refusal(.malformed, detail: "X-Auth-Timestamp: expected whole Unix seconds, once") }
        let claim = Claim.make(
            name, keyID: keyID, algorithm: .hmacSHA256, mac: mac,
            reusing: workspace.spareClaim.take())
        claim.created = .unix(seconds)
        claim.replay = .impossible
        switch request.bodyState {
        case .whole: try AuthV4Members.read(request.body.span, into: &workspace)
        case .awaited: claim.inputSource = .awaitedBody
        case .streaming:
            throw Refusal(.tooLarge, detail: "auth-v4 signs inside the body, which is too large to be held")
        }
        return claim
    }

    /// Method, URL as the client wrote it, and the body's members. The URL is where the request came to, or
    /// where the app's policy says that clients see it.
    package func writeStringToSign(for claim: Claim, of request: Request, into workspace: inout Workspace)
        throws(Refusal)
    {
        var text = workspace.text.takeBytes()
        text.append(request.head.span.extracting(request.method.range))
        text.append(UInt8(ascii: "\n"))
        if let publicURL = workspace.settings.publicURL {
            text.append(publicURL.span)
        } else {
            switch request.transport {
            case .plain: text.append("http://")
            case .tls: text.append("https://")
            }
            text.append(request.head.span.extracting(request.authority.range))
        }
        text.append(request.head.span.extracting(request.target.range))
        text.append(UInt8(ascii: "\n"))
        AuthV4Members.append(workspace.parameters, of: workspace.decoded.span, to: &text)
        workspace.text.put(back: &text, secretAt: 0)
    }

    /// Sets the four fields; the draft's authority and target are the URL.
    package func sign(_ draft: inout Draft, as credentials: Credentials, at: Int64, nonce: String)
        throws(Refusal)
    {
        draft.setField("X-Auth-Version", to: "4")
        draft.setField("X-Auth-Client-ID", to: credentials.keyID.description)
        draft.setField("X-Auth-Timestamp", to: "\(at)")
        draft.setField("X-Auth-Signature", to: String(repeating: "0", count: 64))
        // Read back as a receiver would: a body that is no object ends here.
        let request = draft.request()
        var workspace = Workspace()
        guard let claim = try claim(in: request, workspace: &workspace) else {
            throw Refusal(.malformed, detail: "nothing to sign")
        }
        try writeStringToSign(for: claim, of: request, into: &workspace)
        draft.setField(
            "X-Auth-Signature", to: Hex.encode(credentials.key.mac(.hmacSHA256, of: workspace.text).span))
    }
}

extension AuthV4: SchemeDefinition {
    package static var traits: SchemeTraits {
        SchemeTraits(
            replayNumber: 6, purpose: .legacy, defaultWindow: 12 * 3600, windowEnd: .excluded,
            replayDetection: .impossible, signedParameters: .jsonMembers)
    }

    package static var layout: SchemeLayout? {
        SchemeLayout(
            signature: [.field("x-auth-signature")],
            keyID: [.field("x-auth-client-id")],
            encoding: .hexadecimal(bytes: 32),
            lines: .positional(["method", "URL", "parameters"], then: .unnamed), firstParameterLine: 2)
    }
}
