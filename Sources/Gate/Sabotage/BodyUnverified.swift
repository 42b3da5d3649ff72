#if SABOTAGE
    import CountersignSchemes
    import CountersignWire

    /// Reads what was signed of a body, and asks for nothing.
    package struct BodyUnverified: CarelessScheme {
        package let inner: any Scheme

        package init(_ inner: any Scheme) { self.inner = inner }

        package func claim(
            in request: Request, names: ParameterNames, _ workspace: inout Workspace
        ) throws(Refusal) -> Claim? {
            try unverified(inner.claim(in: request, names: names, &workspace))
        }

        package func claim(
            in request: Request, labelled label: String, _ workspace: inout Workspace
        ) throws(Refusal) -> Claim? { try unverified(inner.claim(in: request, labelled: label, &workspace)) }

        private func unverified(_ claim: Claim?) -> Claim? {
            claim?.body = .anything
            return claim
        }
    }
#endif
