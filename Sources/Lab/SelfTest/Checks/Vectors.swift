import CountersignHTTP
import CountersignSchemes
import CountersignSeal
import CountersignWire

extension Check {
    /// That both ends mean the same: this program by the published figures, the deployment by what it makes of them.
    static func vectors(_ subject: Subject) -> [Check] {
        let vectors = PublishedVector.all.filter { $0.scheme == subject.scheme }
        return [
            Check("vectors", .vectors, "nothing: \(vectors.count) published requests are verified here", weight: .all) {
                (inquiry) throws(Fault) in
                let failing = vectors.filter { $0.verdict(under: $0.secret) != .equal }
                // A check that takes anything would pass all of them.
                let lax = vectors.filter { $0.verdict(under: $0.secret + [0x21]) != .different }
                return .judged(
                    !vectors.isEmpty && failing.isEmpty && lax.isEmpty,
                    expected: "all verify, and none under another secret",
                    came: (failing + lax).first.map { "not `\($0.name)`" } ?? "\(vectors.count) of \(vectors.count)")
            },
            Check("published-request", .vectors, "a published request, as it was published") {
                (inquiry) throws(Fault) in
                guard let vector = vectors.first else { return .notApplicable("none is published for this scheme") }
                let said = try inquiry.ask(vector.wire, vector.method)
                return inquiry.judged(said, [.unknownKey, .stale, .malformed, .badSignature])
            },
            Check("published-key", .vectors, "a request signed now with a published key") { (inquiry) throws(Fault) in
                guard let vector = vectors.first, let id = KeyID(vector.keyID) else {
                    return .notApplicable("none is published for this scheme")
                }
                var subject = inquiry.subject
                subject.credentials.keyID = id
                subject.credentials.key = SigningKey(Secret(copying: vector.secret.span))
                let draft = try inquiry.sign(subject.draft(.withBody), by: subject)
                return inquiry.judged(try inquiry.ask(draft), [.unknownKey])
            },
        ]
    }
}

/// A request that was signed by another implementation and published, with all that it takes to verify it. Source: Vectors/README.md.
package struct PublishedVector: Sendable {
    package let scheme: SchemeName
    package let name: String
    let keyID: String
    package let secret: [UInt8]
    /// Head and body; the head's lines end in CRLF.
    let text: String

    var wire: [UInt8] { Array(text.utf8) }
    var method: String { String(text.prefix { $0 != " " }) }

    /// What our own reader, speller and comparison make of it. Different, too, where it is not understood.
    package func verdict(under secret: [UInt8]) -> ConstantTime.Verdict {
        var request = Request()
        var parser = HeadParser(limits: Limits())
        var workspace = Workspace()
        do throws(Refusal) {
            guard let parsed = try parser.parse(wire.span, into: &request),
                let scheme = Registry.standard.scheme(named: scheme)
            else { return .different }
            request.body = Array(wire[parsed.length...])
            guard let claim = try scheme.claim(in: request, &workspace) else { return .different }
            try scheme.spell(claim, request, &workspace)
            return claim.compare(with: SigningKey(Secret(copying: secret.span)), workspace)
        } catch {
            return .different
        }
    }
}
