import CountersignSeal
import CountersignWire
import Testing

@testable import CountersignSchemes

@Suite struct SigV4Tests {
    @Test("botocore's and curl's requests, each figure on the way", arguments: try requests())
    func knownAnswers(_ known: AmazonRequest) throws {
        let request = known.draft.request()
        var workspace = Workspace()
        #expect(SigV4().detect(in: request) == .present)
        let claim = try #require(try SigV4().claim(in: request, workspace: &workspace))
        #expect(claim.keyID == KeyID(known.keyId))
        #expect(claim.created == .unix(known.created))
        #expect(claim.mac.array == Hex.decode(known.signature))

        try SigV4().writeStringToSign(for: claim, of: request, into: &workspace)
        if known.spelling == "standard" { #expect(workspace.canonicalRequest == known.canonicalRequest) }
        var attempt = 0
        while workspace.canonicalRequest != known.canonicalRequest,
            try SigV4().writeAlternative(attempt, for: claim, of: request, into: &workspace) == .written
        { attempt += 1 }
        #expect(workspace.canonicalRequest == known.canonicalRequest)
        let digest = SHA256.digest(Array(workspace.canonicalRequest.utf8).span)
        #expect(Hex.encode(digest.span) == known.canonicalRequestSha256)
        #expect(workspace.text.displayText == known.stringToSign)
        let text = Array(known.stringToSign.utf8)
        let third = CredentialScope(in: text.span)
        let scope = try #require(third)
        let key = DerivedKeyCache.signingKey(from: known.key, scope: scope, text: text.span)
        #expect(key.withExposedBytes { Hex.encode($0) } == known.signingKey)
        #expect(SigningKey(known.key).mac(.sigV4, of: workspace.text).array == claim.mac.array)
    }

    @Test("signing the same again gives the same signature", arguments: try requests().filter(isOurs))
    func signs(_ known: AmazonRequest) throws {
        let request = known.draft.request()
        var workspace = Workspace()
        _ = try SigV4().claim(in: request, workspace: &workspace)
        var credentials = Credentials(keyID: try #require(KeyID(known.keyId)), key: SigningKey(known.key))
        let scope = known.stringToSign.split(separator: "\n")[2].split(separator: "/")
        (credentials.region, credentials.service) = (String(scope[1]), String(scope[2]))
        var draft = known.draft
        draft.fields.removeAll { ["authorization", "x-amz-date"].contains($0.name.lowercased()) }
        try SigV4().sign(&draft, as: credentials, at: known.created, nonce: "")
        #expect(text(of: "Authorization", in: draft).hasSuffix("Signature=\(known.signature)"))
    }

    @Test("what the claim says of body and time")
    func claims() throws {
        let digest = Array(repeating: "0", count: 64).joined()
        for (value, expected) in [
            (nil, "inSignature"), (digest, "digests"), ("UNSIGNED-PAYLOAD", "leftOpen"),
        ] {
            let request = try signed { if let value { $0.setField("X-Amz-Content-Sha256", to: value) } }
                .request()
            var workspace = Workspace()
            let claim = try #require(try SigV4().claim(in: request, workspace: &workspace))
            switch claim.body {
            case .inSignature: #expect(expected == "inSignature")
            case .digests(let sha256, nil):
                #expect(expected == "digests" && sha256?.array == Hex.decode(digest))
            case .leftOpen: #expect(expected == "leftOpen")
            default: Issue.record("unexpected")
            }
            guard case .signature = claim.replay else {
                Issue.record("the signature is the replay key")
                return
            }
        }
    }

    @Test func bodyThatIsNotHeldNeedsItsDigest() throws {
        var request = try signed { $0.method = "PUT" }.request()
        request.isBodyWhole = false
        #expect(refusal(of: request)?.code == .tooLarge)
        request = try signed { $0.body = [1, 2, 3] }.request()
        request.isBodyWhole = false
        request.body = []
        #expect(refusal(of: request) == nil)
    }

    private static func requests() throws -> [AmazonRequest] {
        try Vectors.load("sigv4/cases.json", as: AmazonRequest.self)
            + Vectors.load("sigv4/curl-7.88.1.json", as: AmazonRequest.self)
    }

    /// We sign in the header, with X-Amz-Date, all that is sent, and say the digest of a body.
    private static func isOurs(_ request: AmazonRequest) -> Bool {
        let names = Set(request.fields.map { $0[0].lowercased() })
        return request.spelling == "standard" && names.contains("authorization") && !names.contains("date")
            && (request.body.isEmpty || names.contains("x-amz-content-sha256"))
    }
}

/// A request that is signed well.
func signed(_ change: (inout Draft) -> Void = { _ in }) throws -> Draft {
    var draft = Draft(method: "GET", target: Array("/a?b=c".utf8), authority: "h.example")
    change(&draft)
    try SigV4().sign(&draft, as: credentials("AKID"), at: 1_800_000_000, nonce: "")
    return draft
}

func refusal(of request: Request) -> Refusal? {
    var workspace = Workspace()
    do {
        let claim = try SigV4().claim(in: request, workspace: &workspace)
        if let claim { try SigV4().writeStringToSign(for: claim, of: request, into: &workspace) }
        return claim == nil ? Refusal(.unsigned) : nil
    } catch {
        return error
    }
}
