import CountersignSchemes
import CountersignSeal
import CountersignWire

/// Sends one request, signed by the server's scheme, and returns its response.
package struct LegacyExchange: Sendable {
    package let server: LegacyServer
    private let transport: any Transport
    private let own: any Transport
    /// Whole Unix seconds, by the device's clock. The client does not use a legacy server's time: its
    /// responses are not signed.
    private let now: @Sendable () -> Int64
    private let random: any RandomSource

    /// `own` carries logins, renewals and log-outs. Four of them may run while this process holds the
    /// vault's lease, for which other processes wait two minutes: the transport must have a timeout.
    package init(
        _ server: LegacyServer, transport: any Transport, own: any Transport,
        now: @escaping @Sendable () -> Int64,
        random: any RandomSource
    ) {
        self.server = server
        self.transport = transport
        self.own = own
        self.now = now
        self.random = random
    }

    var time: Int64 { now() }

    /// The signed request as it would be sent now.
    package func signed(_ draft: Draft, as session: LegacySession?) throws(ClientOperationError) -> Draft {
        var draft = draft
        if let session, let token = session.token {
            try server.requireBearerSecretsAllowed()
            try addToken(to: &draft, userID: session.userID, token: token)
        }
        return try sign(draft)
    }

    func send(
        _ draft: Draft, as session: LegacySession?, over other: (any Transport)? = nil
    ) async throws(ClientOperationError) -> Response {
        try await carry(try signed(draft, as: session), by: other ?? transport)
    }

    /// Sends a login; `value` is the value that a server of the route's rung stores.
    func logIn(_ name: String, value: Secret, at route: LegacyLoginRoute) async throws(ClientOperationError)
        -> LegacyLoginResponse
    {
        try server.requireBearerSecretsAllowed()
        let sent: Secret
        do {
            sent = try LoginLadder.sentValue(for: value, on: route.rung, settings: route.settings, at: time)
        } catch {
            throw .incomplete("\(error)")
        }
        var draft = route.rung.loginRequest(
            username: name, value: sent, path: route.path, authority: server.host, transport: server.transport
        )
        addFields(to: &draft)
        if case .likeRequests = route.signing { draft = try sign(draft) }
        let response = try await carry(draft, by: own)
        return try LegacyLoginResponse(response, at: time)
    }

    /// Gets a new token for `loginToken`.
    func renew(with loginToken: Secret) async throws(ClientOperationError) -> LegacyTokenResponse {
        try LegacyTokenResponse(try await post(loginToken, to: server.tokens.renewalPath), at: time)
    }

    /// Ends a session at `path` by its token and login token. Its token goes where requests have it. `cookie`
    /// is the value of `Cookie`, for servers whose sessions have one; nil for none.
    func end(
        _ session: LegacySession, at path: String, cookie: String?
    ) async throws(ClientOperationError) -> Response {
        try await post(session.loginToken, to: path, cookie: cookie, tokenOf: session)
    }

    private func post(
        _ loginToken: Secret?, to path: String, cookie: String? = nil, tokenOf session: LegacySession? = nil
    ) async throws(ClientOperationError) -> Response {
        try server.requireBearerSecretsAllowed()
        var draft = Draft(
            method: "POST", target: Array(path.utf8), authority: server.host, transport: server.transport)
        addFields(to: &draft)
        if let cookie { draft.setField("Cookie", to: cookie) }
        draft.setField("Content-Type", to: "application/x-www-form-urlencoded")
        loginToken?.withExposedBytes { Form.append("loginToken", value: $0, to: &draft.body) }
        if let session, let token = session.token {
            try addToken(to: &draft, userID: session.userID, token: token)
        }
        // Our gateway accepts it signed or not; auth-v4 signs JSON alone.
        if server.signing.name != .authV4 { draft = try sign(draft) }
        return try await carry(draft, by: own)
    }

    private func addFields(to draft: inout Draft) {
        draft.setField("User-Agent", to: server.userAgent)
        draft.setField("Accept", to: "application/json")
    }

    private func addToken(to draft: inout Draft, userID: Int64, token: Secret) throws(ClientOperationError) {
        switch server.tokens.place {
        case .authorizationField:
            draft.setField("Authorization", to: "Bearer \(token.withExposedBytes { $0.text })")
        case .formParameters:
            do {
                try FormMD5().addSessionParameters(to: &draft, userID: userID, token: token)
            } catch {
                throw .incomplete(error.detail)
            }
        }
    }

    private func sign(_ draft: Draft) throws(ClientOperationError) -> Draft {
        guard case .scheme(let scheme, let credentials) = server.signing else { return draft }
        var draft = draft
        let nonce = Nonce.make(for: scheme.name, random: random)
        do {
            // The clock is read once: the signed time is the sent time.
            try scheme.sign(&draft, as: credentials, at: time, nonce: nonce)
        } catch {
            throw .incomplete(error.detail)
        }
        return draft
    }

    private func carry(
        _ draft: Draft, by transport: any Transport
    ) async throws(ClientOperationError) -> Response {
        do {
            return try await transport.send(draft)
        } catch {
            throw .transport(error)
        }
    }
}
