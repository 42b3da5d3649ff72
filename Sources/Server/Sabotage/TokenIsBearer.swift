#if SABOTAGE
    import CountersignAuthority
    import CountersignGate
    import CountersignSchemes
    import CountersignWire

    /// Puts the right MAC in the place of the one that came with a session's token, so that the token alone is enough.
    struct TokenIsBearer: CarelessScheme {
        let inner: any Scheme
        private let sessions: LiveSessions

        init(_ inner: any Scheme, _ sessions: LiveSessions) {
            self.inner = inner
            self.sessions = sessions
        }

        func claim(
            in request: Request, names: ParameterNames, _ workspace: inout Workspace
        ) throws(Refusal) -> Claim? {
            guard let claim = try inner.claim(in: request, names: names, &workspace) else { return nil }
            if case .session(let token) = claim.holder, let (_, key) = try? sessions.find(token) {
                try inner.spell(claim, request, &workspace)
                claim.mac = key.mac(claim.algorithm, of: workspace.text)
            }
            return claim
        }
    }
#endif
