import CountersignSeal
import struct CountersignTransport.TransportError
import CountersignVault
import CountersignWire

extension LegacyAccount {
    /// A renewal that is in progress, and the session that it renews.
    struct Renewal {
        let used: LegacySession.Mark?
        let task: Task<Result<Void, ClientOperationError>, Never>
    }

    /// Returns once there is another token than that of `used`, or a session if there was none. All callers
    /// share one renewal; cancelling one caller does not stop it.
    func renew(leaving used: LegacySession?) async throws(ClientOperationError) {
        while let renewal {
            let result = await renewal.task.value
            if renewal.used == used?.mark { return try result.get() }
        }
        guard try known().kept.session?.mark == used?.mark else { return }
        let task = Task {
            let result = await self.renewCatchingErrors(leaving: used)
            self.renewal = nil
            return result
        }
        renewal = Renewal(used: used?.mark, task: task)
        try await task.value.get()
    }

    /// For a request whose body can be sent only once: it is not sent under a token that has expired by the
    /// device's clock. If the token cannot be renewed, the request fails with the renewal's error.
    func renewIfExpired() async throws(ClientOperationError) {
        let session = try session()
        guard let expires = session.expires, expires <= exchange.time else { return }
        try await renew(leaving: session)
    }

    private func renewCatchingErrors(leaving used: LegacySession?) async -> Result<Void, ClientOperationError>
    {
        do throws(ClientOperationError) {
            try await renewUnderLease(leaving: used)
            return .success(())
        } catch {
            return .failure(recordingUpdateStop(error))
        }
    }

    private func renewUnderLease(leaving used: LegacySession?) async throws(ClientOperationError) {
        let lease = try await store.lease()
        defer { lease.release() }
        try requireTraffic()
        let now = try readVault()
        // Another process or the user changed the session in between.
        guard now.kept.session?.mark == used?.mark else {
            if now.kept.session == nil { throw .notSignedIn }
            return
        }
        let replacement: LegacySession
        var signIn: LegacySignIn?
        if let session = now.kept.session, let loginToken = session.loginToken {
            replacement = try await renewToken(of: session, with: loginToken)
        } else {
            let login = try await signInWithRememberedCredentials(of: now)
            (replacement, signIn) = (login.session, login)
        }
        var kept = now.kept
        kept.session = replacement
        guard try write(kept, expecting: now.expectation) else {
            // The user signed out, or in again, while the response was in transit; that decision stands.
            if try readVault().kept.session == nil { throw .notSignedIn }
            return
        }
        if let signIn { begin(signIn) } else { setStatus(.active(replacement)) }
    }

    private func renewToken(
        of session: LegacySession, with loginToken: Secret
    ) async throws(ClientOperationError) -> LegacySession {
        let answer: LegacyTokenResponse
        do {
            answer = try await renewRepeatingIfLost(with: loginToken)
        } catch {
            // Only the server's statement about the login token itself ends a session.
            guard case .refused(let notice) = error, notice.isOver else { throw error }
            _ = try end(session, reason: SessionEndRecord(notice))
            throw .sessionEnded(notice)
        }
        var session = session
        session.token = answer.token
        session.loginToken = answer.loginToken ?? loginToken
        session.expires = answer.expires
        return session
    }

    /// A login token can be exchanged any number of times, and the last token counts: repeating the request
    /// is harmless.
    private func renewRepeatingIfLost(with loginToken: Secret) async throws(ClientOperationError)
        -> LegacyTokenResponse
    {
        do {
            return try await exchange.renew(with: loginToken)
        } catch {
            guard case .transport(let problem) = error, problem.fate != .notSent else { throw error }
            return try await exchange.renew(with: loginToken)
        }
    }

    /// Tells the server that a session is over. `cookie` is the value of `Cookie`, nil for none.
    package func endAtServer(
        _ session: LegacySession, cookie: String?
    ) async throws(ClientOperationError) -> Response {
        guard let path = exchange.server.tokens.logoutPath else {
            throw .incomplete("no path to sign out at was named")
        }
        do {
            return try await exchange.end(session, at: path, cookie: cookie)
        } catch {
            // A second copy ends nothing else: it is repeated, as a renewal is.
            guard case .transport(let problem) = error, problem.fate != .notSent else { throw error }
            return try await exchange.end(session, at: path, cookie: cookie)
        }
    }

    /// Signs in with the remembered credentials. Without any, the session has ended.
    private func signInWithRememberedCredentials(of now: LegacyStore.Found) async throws(ClientOperationError)
        -> LegacySignIn
    {
        guard remembering == .whatSignsIn, let route = exchange.server.login,
            let remembered = now.kept.remembered,
            remembered.rung == route.rung
        else {
            if let session = now.kept.session { _ = try end(session, reason: .tokenExpired) }
            throw .notSignedIn
        }
        do {
            let answer = try await exchange.logIn(remembered.account, value: remembered.value, at: route)
            return LegacySignIn(LegacySession(account: remembered.account, response: answer), by: answer)
        } catch {
            guard case .wrongCredentials = error else { throw error }
            if try write(LegacyPersistedState(), expecting: now.expectation) {
                setStatus(.signedOut(.credentialsRefused))
            }
            throw error
        }
    }
}

extension RefusalNotice {
    /// `-100` and `-101` concern the login token if the request carried that.
    fileprivate var isOver: Bool { code == "session-ended" || code == "token-expired" }
}
