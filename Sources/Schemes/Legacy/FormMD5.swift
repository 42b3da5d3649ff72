import CountersignWire

/// Form parameters under one MD5, a key for each platform and version. Source: docs/protocol.md, form-md5.
package struct FormMD5: Scheme {
    package init() {}

    package var name: SchemeName { .formMD5 }
    package var dialect: AnswerDialect { .legacy }

    package var coverage: Coverage {
        Coverage(
            covered: [.formParameters],
            uncovered: [.method, .authority, .transport, .path, .otherFields, .formSpelling],
            weaknesses: [
                "values are not escaped: a=\"1&b=2\" signs like a=1, b=2",
                "MD5 over the secret in the middle of the text is not a MAC",
            ])
    }

    package func trace(in request: Request) -> Trace { .absent }

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
