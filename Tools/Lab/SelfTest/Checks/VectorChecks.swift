import CountersignHTTP
import CountersignSchemes
import CountersignSeal
import CountersignWire

extension SelfTestCheck {
    /// Checks this program and the deployment against the published vectors.
    static func vectors(_ subject: SelfTestSubject) -> [SelfTestCheck] {
        let vectors = PublishedVector.all.filter { $0.scheme == subject.scheme }
        return [
            SelfTestCheck(
                "vectors", family: .vectors,
                sent: "nothing: \(vectors.count) published requests are verified here", weight: .all
            ) {
                (inquiry) throws(OperationalError) in
                let failing = vectors.filter { $0.verdict(under: $0.secret) != .equal }
                // A verifier that accepts everything would pass all of them.
                let lax = vectors.filter { $0.verdict(under: $0.secret + [0x21]) != .different }
                return .judged(
                    !vectors.isEmpty && failing.isEmpty && lax.isEmpty,
                    expected: "all verify, and none under another secret",
                    observed: (failing + lax).first.map { "not `\($0.name)`" }
                        ?? "\(vectors.count) of \(vectors.count)")
            },
            SelfTestCheck(
                "published-request", family: .vectors, sent: "a published request, as it was published"
            ) {
                (inquiry) throws(OperationalError) in
                guard let vector = vectors.first else {
                    return .notApplicable("none is published for this scheme")
                }
                let said = try inquiry.submit(vector.wire, method: vector.method)
                return inquiry.result(of: said, expecting: [.unknownKey, .stale, .malformed, .badSignature])
            },
            SelfTestCheck(
                "published-key", family: .vectors, sent: "a request signed now with a published key"
            ) { (inquiry) throws(OperationalError) in
                guard let vector = vectors.first, let id = KeyID(vector.keyID) else {
                    return .notApplicable("none is published for this scheme")
                }
                var subject = inquiry.subject
                subject.credentials.keyID = id
                subject.credentials.key = SigningKey(Secret(copying: vector.secret.span))
                let draft = try inquiry.sign(subject.draft(.withBody), by: subject)
                return inquiry.result(of: try inquiry.submit(draft), expecting: [.unknownKey])
            },
        ]
    }
}

/// A published request, signed by another implementation, with all that is needed to verify it. Source:
/// Vectors/README.md.
package struct PublishedVector: Sendable {
    package let scheme: SchemeName
    package let name: String
    let keyID: String
    package let secret: [UInt8]
    /// Head and body; the head's lines end in CRLF.
    let text: String

    var wire: [UInt8] { Array(text.utf8) }
    var method: String { String(text.prefix { $0 != " " }) }

    /// The verdict of this implementation's parser, signature base and comparison. `different` if it cannot
    /// be parsed.
    package func verdict(under secret: [UInt8]) -> ConstantTime.Verdict {
        var request = Request()
        var parser = HeadParser(limits: Limits())
        var workspace = Workspace()
        do {
            guard let parsed = try parser.parse(wire.span, into: &request),
                let scheme = SchemeRegistry.standard.scheme(named: scheme)
            else { return .different }
            request.body = Array(wire[parsed.length...])
            guard let claim = try scheme.claim(in: request, workspace: &workspace) else { return .different }
            try scheme.writeStringToSign(for: claim, of: request, into: &workspace)
            return claim.compare(with: SigningKey(Secret(copying: secret.span)), workspace: workspace)
        } catch {
            return .different
        }
    }
}
