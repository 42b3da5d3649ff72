import CountersignSeal
import CountersignWire

/// AWS Signature Version 4 with HMAC-SHA256, in the `Authorization` field or in the query of a presigned URL.
/// Source: docs/protocol.md, sigv4; AWS's "Signature Version 4 for API requests".
package struct SigV4: Scheme {
    package init() {}

    package var name: SchemeName { .sigV4 }
    package var dialect: ResponseDialect { .problem }

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
        switch (SigV4Location.header(of: request), SigV4Location.query(of: request)) {
        case (false, false): return nil
        case (true, true):
            throw Refusal(
                .malformed, detail: "signed in Authorization and in the query; expected one of them")
        case (true, false): try workspace.sigV4.readHeader(of: request)
        case (false, true): try workspace.sigV4.readQuery(of: request)
        }
        try SigV4.checkTarget(request)
        let reading = workspace.sigV4.authorization
        guard let keyID = KeyID(workspace.sigV4.words.span.extracting(reading.keyID.range)) else {
            throw Refusal(.malformed, detail: "sigv4: expected a key id of 1 to 64 visible characters")
        }
        let claim = Claim(scheme: name, keyID: keyID, algorithm: .sigV4, mac: reading.signature)
        claim.created = .unix(reading.seconds)
        claim.lifetime = reading.lifetime
        claim.replay = .signature
        claim.coveredFields = .only(try workspace.sigV4.resolveFields(of: request))
        claim.body = try workspace.sigV4.readPayload(of: request)
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
        let hasSorted = workspace.sigV4.mayDiffer(.sorted, for: request)
        if attempt == 0, hasSorted {
            try writeStringToSign(in: .sorted, of: request, into: &workspace)
            return .written
        }
        guard attempt == (hasSorted ? 1 : 0), workspace.sigV4.mayDiffer(.asWritten, for: request) else {
            return .exhausted
        }
        try writeStringToSign(in: .asWritten, of: request, into: &workspace)
        return .written
    }

    package func ambiguity(of request: Request, in workspace: borrowing Workspace) -> String? {
        guard workspace.sigV4.facts.hasLostSegments else { return nil }
        return
            "path: sigv4 signs it without empty and dot segments, so that /a//b has the signature of /a/b; "
            + "expected a path without them"
    }

    /// Source: AWS Signature Version 4, "Create a string to sign".
    private func writeStringToSign(
        in spelling: SigV4CanonicalForm, of request: Request, into workspace: inout Workspace
    ) throws(Refusal) {
        try workspace.sigV4.writeCanonicalRequest(of: request, in: spelling)
        let digest = SHA256.digest(workspace.sigV4.canonical.span)
        let reading = workspace.sigV4.authorization
        var text = workspace.text.takeBytes()
        text.append("AWS4-HMAC-SHA256\n")
        text.append(workspace.sigV4.words.span.extracting(reading.timestamp.range))
        text.append(UInt8(ascii: "\n"))
        text.append(workspace.sigV4.words.span.extracting(reading.scope.range))
        text.append(UInt8(ascii: "\n"))
        Hex.append(digest.span, to: &text)
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
