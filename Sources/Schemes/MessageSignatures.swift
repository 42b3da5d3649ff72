import CountersignWire

/// HTTP Message Signatures with hmac-sha256. Source: RFC 9421, RFC 9530.
package struct MessageSignatures: Scheme {
    package init() {}

    package var name: SchemeName { .messageSignatures }
    package var dialect: AnswerDialect { .problem }

    package var coverage: Coverage {
        Coverage(
            covered: [.method, .authority, .path, .query, .body, .namedFields, .signatureParameters],
            uncovered: [.transport, .otherFields])
    }

    package func trace(in request: Request) -> Trace {
        request.count(of: "signature-input") > 0 || request.count(of: "signature") > 0 ? .present : .absent
    }

    package func claim(in request: Request, _ workspace: inout Workspace) throws(Refusal) -> Claim {
        fatalError("follows in the next commit")
    }

    package func spell(_ claim: Claim, _ request: Request, _ workspace: inout Workspace) throws(Refusal) {
        fatalError("follows in the next commit")
    }

    package func sign(_ draft: inout Draft, as credentials: Credentials, at: Int64, nonce: String) throws(Refusal) {
        fatalError("follows in the next commit")
    }
}
