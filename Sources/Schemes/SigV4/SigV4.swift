import CountersignSeal
import CountersignWire

/// AWS Signature Version 4 with HMAC-SHA256, in the `Authorization` field or in the query of a presigned URL.
/// Source: docs/protocol.md, sigv4; AWS's "Signature Version 4 for API requests".
package struct SigV4: Scheme {
    package init() {}

    package var name: SchemeName { .sigV4 }
    package var dialect: ResponseDialect { .problem }
    package var evidence: SchemeEvidence {
        SchemeEvidence(fields: FieldNames(.authorization), parameters: .amazon)
    }

    package var coverage: Coverage {
        Coverage(
            covered: [.method, .authority, .path, .query, .body, .namedFields, .signatureParameters],
            uncovered: [.transport, .otherFields, .querySpelling, .fieldSpelling],
            weaknesses: [
                "times are whole seconds, and there is no nonce: two equal calls within a second are one",
                "parameters are sorted: of two with one name, which came first is not signed",
            ])
    }

    package func detect(in request: Request, names: RequestParameterNames) -> SchemeDetection {
        SigV4Location.header(of: request) || SigV4Location.query(of: request) ? .present : .absent
    }

    package func claim(
        in request: Request, names: RequestParameterNames, workspace: inout Workspace
    ) throws(Refusal) -> Claim? {
        let part = workspace.part(SigV4Buffers.self)
        switch (SigV4Location.header(of: request), SigV4Location.query(of: request)) {
        case (false, false): return nil
        case (true, true):
            throw Refusal(
                .malformed, detail: "signed in Authorization and in the query; expected one of them")
        case (true, false): try part.buffers.readHeader(of: request)
        case (false, true): try part.buffers.readQuery(of: request)
        }
        try SigV4.checkTarget(request)
        let reading = part.buffers.authorization
        guard let keyID = part.buffers.keyID else {
            throw Refusal(.malformed, detail: "sigv4: expected a key id of 1 to 64 visible characters")
        }
        let claim = Claim.make(
            name, keyID: keyID, algorithm: .sigV4, mac: reading.signature,
            reusing: workspace.spareClaim.take())
        claim.created = .unix(reading.seconds)
        claim.lifetime = reading.lifetime
        claim.replay = .signature
        claim.coveredFields = .only(try part.buffers.resolveFields(of: request))
        claim.body = try part.buffers.readPayload(of: request)
        if case .inSignature = claim.body, request.bodyState == .awaited { claim.inputSource = .awaitedBody }
        return claim
    }

    package func writeStringToSign(for claim: Claim, of request: Request, into workspace: inout Workspace)
        throws(Refusal)
    {
        try writeStringToSign(in: .standard, of: request, into: &workspace)
    }

    package func writeAlternative(
        _ attempt: Int, for claim: Claim, of request: Request, into workspace: inout Workspace
    ) throws(Refusal) -> AlternativeOutcome {
        let part = workspace.part(SigV4Buffers.self)
        let hasSorted = part.buffers.mayDiffer(.sorted, for: request)
        if attempt == 0, hasSorted {
            try writeStringToSign(in: .sorted, of: request, into: &workspace)
            return .written
        }
        guard attempt == (hasSorted ? 1 : 0), part.buffers.mayDiffer(.asWritten, for: request) else {
            return .exhausted
        }
        try writeStringToSign(in: .asWritten, of: request, into: &workspace)
        return .written
    }

    package func ambiguity(of request: Request, in workspace: borrowing Workspace) -> String? {
        guard workspace.existingPart(SigV4Buffers.self)?.buffers.facts.hasLostSegments == true else {
            return nil
        }
        return
            "path: sigv4 signs it without empty and dot segments, so that /a//b has the signature of /a/b; "
            + "expected a path without them"
    }

    package func canonicalRequest(in workspace: borrowing Workspace) -> String { workspace.canonicalRequest }

    /// Source: AWS Signature Version 4, "Create a string to sign".
    private func writeStringToSign(
        in spelling: SigV4CanonicalForm, of request: Request, into workspace: inout Workspace
    ) throws(Refusal) {
        let part = workspace.part(SigV4Buffers.self)
        try part.buffers.writeCanonicalRequest(of: request, in: spelling)
        var text = workspace.text.takeBytes()
        part.buffers.appendStringToSign(to: &text)
        workspace.text.put(back: &text, secretAt: 0)
    }

    /// The argument that no two paths share a string to sign rests on what a target can hold.
    private static func checkTarget(_ request: Request) throws(Refusal) {
        let target = request.head.span.extracting(request.target.range)
        for index in 0..<target.count where target[index] <= 0x20 || target[index] >= 0x7F {
            throw Refusal(.malformed, detail: "request target: expected visible ASCII at byte \(index)")
        }
    }
}

extension SigV4: SchemeDefinition {
    package static var traits: SchemeTraits {
        SchemeTraits(
            // The header form does not sign its key id.
            replayNumber: 2, purpose: .current, defaultWindow: 300, replayDetection: .acrossKeys)
    }

    package static var layout: SchemeLayout? {
        SchemeLayout(
            signature: [
                .within("authorization", after: "Signature=", ends: ","), .parameter("X-Amz-Signature"),
            ],
            keyID: [
                .within("authorization", after: "Credential=", ends: "/,"), .parameter("X-Amz-Credential"),
            ],
            encoding: .hexadecimal(bytes: 32),
            // Of the canonical request, whose digest the string to sign has.
            lines: .positional(["method", "path", "query"], then: .fields))
    }
}
