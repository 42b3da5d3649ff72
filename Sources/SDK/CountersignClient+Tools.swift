import CountersignClient
import CountersignSchemes
import CountersignSeal
import CountersignTransport
import CountersignWire

/// For tools, which show people what an app has no use for.
extension CountersignClient {
    /// What is kept here now, by whichever process.
    package func kept() async throws(CountersignError) -> PersistedState {
        try await core.look()
        return try await core.step(nil) { (_, way) async throws(ClientProblem) in try way.keeper.state() }
    }

    /// The session as the authority sees it.
    package func current() async throws(CountersignError) -> AccountSessions.Current {
        try await core.step(nil) { (installation, way) async throws(ClientProblem) in
            try await AccountSessions(installation, way).current()
        }
    }

    /// Renews the session now, as requests do once its token has run out.
    package func renew() async throws(CountersignError) {
        try await core.step(nil) { (installation, way) async throws(ClientProblem) in
            try await SignedCalls(installation, way).renew()
        }
    }

    /// The last answer to a request, with its body as it comes. What the authority refuses is an answer like any other, and not thrown;
    /// a session that it has ended is, as ever.
    package func answer(to request: APIRequest) async throws(CountersignError) -> APIAnswer {
        try await core.send(request, ClientCore.Manner(reading: .streamed, signer: nil, refusals: .answered))
    }

    /// A request as it would be sent now. Nothing is renewed for it, and nothing sent.
    package func draft(of request: APIRequest) async throws(CountersignError) -> Draft {
        try await core.open()
        let request = core.named(request)
        let plain = try core.draft(request, try await PreparedBody(request.body))
        return try await core.step(nil) { (installation, way) async throws(ClientProblem) in
            switch request.caller {
            case .account: try SignedCalls(installation, way).signed(plain)
            case .app: try ReleaseCalls(installation, way).signed(plain)
            }
        }
    }
}

extension ReleaseKey {
    /// With a key of any kind that signs.
    package init(_ credentials: Credentials, authorityKey: SigningKey?, app: String?) {
        self.init(id: credentials.keyID.description, app: app, credentials: credentials, authorityKey: authorityKey)
    }
}
