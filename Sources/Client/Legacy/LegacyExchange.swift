import CountersignSchemes
import CountersignSeal
import CountersignWire

/// One request and its answer, signed as the server's scheme has it.
package struct LegacyExchange: Sendable {
    package let server: LegacyServer
    private let transport: any Transport
    private let own: any Transport
    /// Whole Unix seconds, by the device. A legacy server's own time would be a stranger's word: nothing that it says is signed.
    private let now: @Sendable () -> Int64
    private let random: any RandomSource

    /// `own` carries logins and renewals. Four of them may be made with the vault's lease in hand, for which others wait two minutes: it has
    /// to come to an end by itself.
    package init(
        _ server: LegacyServer, _ transport: any Transport, own: any Transport, now: @escaping @Sendable () -> Int64,
        random: any RandomSource
    ) {
        self.server = server
        self.transport = transport
        self.own = own
        self.now = now
        self.random = random
    }

    var time: Int64 { now() }

    /// The request as it would be sent now.
    package func signed(_ draft: Draft, as session: LegacySession?) throws(LegacyProblem) -> Draft {
        var draft = draft
        if let session, let token = session.token {
            try server.requireBearerSecretsAllowed()
            try accompany(&draft, session.userID, token)
        }
        return try sign(draft)
    }

    nonisolated(nonsending) func send(
        _ draft: Draft, as session: LegacySession?, over other: (any Transport)? = nil
    ) async throws(LegacyProblem) -> Response {
        try await carry(try signed(draft, as: session), by: other ?? transport)
    }

    /// What the login's answer is; `value` is what a server of the door's rung keeps.
    nonisolated(nonsending) func logIn(_ name: String, _ value: Secret, at door: LegacyDoor) async throws(LegacyProblem)
        -> LoggedIn
    {
        try server.requireBearerSecretsAllowed()
        let sent: Secret
        do {
            sent = try LoginLadder.sent(value, on: door.rung, door.settings, at: time)
        } catch {
            throw .notSignable("\(error)")
        }
        var draft = door.rung.request(name, sent, path: door.path, authority: server.host, transport: server.transport)
        addFields(to: &draft)
        if case .likeRequests = door.signing { draft = try sign(draft) }
        let response = try await carry(draft, by: own)
        return try LoggedIn(response, at: time)
    }

    /// A new token for `loginToken`.
    nonisolated(nonsending) func renew(with loginToken: Secret) async throws(LegacyProblem) -> RenewedToken {
        try server.requireBearerSecretsAllowed()
        var draft = Draft(
            method: "POST", target: Array(server.tokens.renewalPath.utf8), authority: server.host,
            transport: server.transport)
        addFields(to: &draft)
        draft.set("Content-Type", "application/x-www-form-urlencoded")
        loginToken.withExposedBytes { Form.append("loginToken", $0, to: &draft.body) }
        // Our own gateway takes it signed or not; auth-v4 signs JSON alone.
        if server.signing.name != .authV4 { draft = try sign(draft) }
        return try RenewedToken(try await carry(draft, by: own), at: time)
    }

    private func addFields(to draft: inout Draft) {
        draft.set("User-Agent", server.userAgent)
        draft.set("Accept", "application/json")
    }

    private func accompany(_ draft: inout Draft, _ userID: Int64, _ token: Secret) throws(LegacyProblem) {
        switch server.tokens.place {
        case .authorizationField:
            draft.set("Authorization", "Bearer \(token.withExposedBytes { $0.text })")
        case .formParameters:
            do {
                try FormMD5().accompany(&draft, userID: userID, token: token)
            } catch {
                throw .notSignable(error.detail)
            }
        }
    }

    private func sign(_ draft: Draft) throws(LegacyProblem) -> Draft {
        guard case .scheme(let scheme, let credentials) = server.signing else { return draft }
        var draft = draft
        let nonce = Nonce.make(for: scheme.name, random: random)
        do {
            // One reading of the clock: what is signed is what is sent.
            try scheme.sign(&draft, as: credentials, at: time, nonce: nonce)
        } catch {
            throw .notSignable(error.detail)
        }
        return draft
    }

    nonisolated(nonsending) private func carry(
        _ draft: Draft, by transport: any Transport
    ) async throws(LegacyProblem) -> Response {
        do {
            return try await transport.send(draft)
        } catch {
            throw .transport(error)
        }
    }
}
