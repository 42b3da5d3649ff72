import CountersignSeal
import CountersignWire

/// AWS Signature Version 4 with HMAC-SHA256, in the `Authorization` field or in the query of a presigned URL.
/// Source: docs/protocol.md, sigv4; AWS's "Signature Version 4 for API requests".
package struct SigV4: Scheme {
    package init() {}

    package var name: SchemeName { .sigV4 }
    package var dialect: AnswerDialect { .problem }

    package var coverage: Coverage {
        Coverage(
            covered: [.method, .authority, .path, .query, .body, .namedFields, .signatureParameters],
            uncovered: [.transport, .otherFields, .querySpelling, .fieldSpelling],
            weaknesses: [
                "times are whole seconds, and there is no nonce: two equal calls within a second are one",
                "parameters are sorted: of two with one name, which came first is not signed",
            ])
    }

    package func trace(in request: Request, names: ParameterNames) -> Trace {
        SigV4Place.header(of: request) || SigV4Place.query(of: request) ? .present : .absent
    }

    package func claim(
        in request: Request, names: ParameterNames, _ workspace: inout Workspace
    ) throws(Refusal) -> Claim? {
        switch (SigV4Place.header(of: request), SigV4Place.query(of: request)) {
        case (false, false): return nil
        case (true, true):
            throw Refusal(.malformed, "signed in Authorization and in the query; expected one of them")
        case (true, false): try workspace.sigV4.readHeader(of: request)
        case (false, true): try workspace.sigV4.readQuery(of: request)
        }
        try SigV4.checkTarget(request)
        let reading = workspace.sigV4.reading
        guard let keyID = KeyID(workspace.sigV4.words.span.extracting(reading.keyID.range)) else {
            throw Refusal(.malformed, "sigv4: expected a key id of 1 to 64 visible characters")
        }
        let claim = Claim(scheme: name, keyID: keyID, algorithm: .sigV4, mac: reading.signature)
        claim.created = .unix(reading.seconds)
        claim.lifetime = reading.lifetime
        claim.replay = .signature
        claim.coveredFields = .only(try workspace.sigV4.cover(request))
        claim.body = try workspace.sigV4.readPayload(of: request)
        if case .inSignature = claim.body, request.bodyState == .awaited { claim.base = .awaitedBody }
        return claim
    }

    package func spell(_ claim: Claim, _ request: Request, _ workspace: inout Workspace) throws(Refusal) {
        try spell(.standard, request, &workspace)
    }

    package func respell(
        _ attempt: Int, _ claim: Claim, _ request: Request, _ workspace: inout Workspace
    ) throws(Refusal) -> Respelling {
        let hasSorted = workspace.sigV4.mayDiffer(.sorted, request)
        if attempt == 0, hasSorted {
            try spell(.sorted, request, &workspace)
            return .written
        }
        guard attempt == (hasSorted ? 1 : 0), workspace.sigV4.mayDiffer(.asWritten, request) else { return .exhausted }
        try spell(.asWritten, request, &workspace)
        return .written
    }

    package func ambiguity(of request: Request, _ workspace: borrowing Workspace) -> String? {
        guard workspace.sigV4.facts.hasLostSegments else { return nil }
        return "path: sigv4 signs it without empty and dot segments, so that /a//b has the signature of /a/b; "
            + "expected a path without them"
    }

    /// Source: AWS Signature Version 4, "Create a string to sign".
    private func spell(
        _ spelling: SigV4Spelling, _ request: Request, _ workspace: inout Workspace
    ) throws(Refusal) {
        try workspace.sigV4.writeCanonicalRequest(request, spelling)
        let digest = SHA256.digest(workspace.sigV4.canonical.span)
        let reading = workspace.sigV4.reading
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
            throw Refusal(.malformed, "request target: expected visible ASCII at byte \(index)")
        }
    }
}
