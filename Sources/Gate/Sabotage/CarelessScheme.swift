#if SABOTAGE
    import CountersignSchemes
    import CountersignWire

    /// Another scheme with something wrong about it: what is not said here is that scheme's own.
    package protocol CarelessScheme: Scheme {
        var inner: any Scheme { get }
    }

    extension CarelessScheme {
        package var name: SchemeName { inner.name }
        package var coverage: Coverage { inner.coverage }
        package var dialect: AnswerDialect { inner.dialect }

        package func trace(in request: Request, names: ParameterNames) -> Trace {
            inner.trace(in: request, names: names)
        }

        package func claim(
            in request: Request, names: ParameterNames, _ workspace: inout Workspace
        ) throws(Refusal) -> Claim? {
            try inner.claim(in: request, names: names, &workspace)
        }

        package func claim(
            in request: Request, labelled label: String, _ workspace: inout Workspace
        ) throws(Refusal) -> Claim? { try inner.claim(in: request, labelled: label, &workspace) }

        package func spell(_ claim: Claim, _ request: Request, _ workspace: inout Workspace) throws(Refusal) {
            try inner.spell(claim, request, &workspace)
        }

        package func respell(
            _ attempt: Int, _ claim: Claim, _ request: Request, _ workspace: inout Workspace
        ) throws(Refusal) -> Respelling { try inner.respell(attempt, claim, request, &workspace) }

        package func ambiguity(of request: Request, _ workspace: borrowing Workspace) -> String? {
            inner.ambiguity(of: request, workspace)
        }

        package func sign(_ draft: inout Draft, as credentials: Credentials, at: Int64, nonce: String) throws(Refusal) {
            try inner.sign(&draft, as: credentials, at: at, nonce: nonce)
        }
    }
#endif
