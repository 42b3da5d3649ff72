import CountersignSeal
import CountersignVault

extension LegacyAccount {
    /// A renewal that is on its way, and of what.
    struct Renewal {
        let used: LegacySession.Mark?
        let task: Task<Result<Void, LegacyProblem>, Never>
    }

    /// Returns once there is another token than `used` had, or a session where there was none: one renewal, however many ask. It goes on
    /// when who asked for it is cancelled, for the others.
    func renew(leaving used: LegacySession?) async throws(LegacyProblem) {
        while let renewal {
            let result = await renewal.task.value
            if renewal.used == used?.mark { return try result.get() }
        }
        guard try known().kept.session?.mark == used?.mark else { return }
        let task = Task {
            let result = await self.renewed(leaving: used)
            self.renewal = nil
            return result
        }
        renewal = Renewal(used: used?.mark, task: task)
        try await task.value.get()
    }

    /// For what can be sent once only: it is not spent on a token that ran out by the device's clock. Where
    /// that cannot be renewed, the request is refused, and says so.
    func renewIfOut() async throws(LegacyProblem) {
        let session = try session()
        guard let expires = session.expires, expires <= exchange.time else { return }
        try await renew(leaving: session)
    }

    private func renewed(leaving used: LegacySession?) async -> Result<Void, LegacyProblem> {
        do throws(LegacyProblem) {
            try await renewUnderLease(leaving: used)
            return .success(())
        } catch {
            return .failure(heeded(error))
        }
    }

    private func renewUnderLease(leaving used: LegacySession?) async throws(LegacyProblem) {
        let lease = try await store.lease()
        defer { lease.release() }
        try requireTraffic()
        let now = try reread()
        // Another process was here meanwhile, or the user.
        guard now.kept.session?.mark == used?.mark else {
            if now.kept.session == nil { throw .notSignedIn }
            return
        }
        let replacement: LegacySession
        if let session = now.kept.session, let loginToken = session.loginToken {
            replacement = try await renewed(session, with: loginToken)
        } else {
            replacement = try await remembered(in: now)
        }
        var kept = now.kept
        kept.session = replacement
        guard try write(kept, expecting: now.expectation) else {
            // Who signed out, or in, while the answer was on its way meant it.
            if try reread().kept.session == nil { throw .notSignedIn }
            return
        }
        stand(.active(replacement))
    }

    private func renewed(
        _ session: LegacySession, with loginToken: Secret
    ) async throws(LegacyProblem) -> LegacySession {
        let answer: RenewedToken
        do {
            answer = try await askedAgainWhereLost(loginToken)
        } catch {
            // Nothing but the server's word about the login token itself ends a session.
            guard case .refused(let notice) = error, notice.isOver else { throw error }
            _ = try end(session, .ended(notice))
            throw .sessionEnded(notice)
        }
        var session = session
        session.token = answer.token
        session.loginToken = answer.loginToken ?? loginToken
        session.expires = answer.expires
        return session
    }

    /// A login token is good for any number of tokens, of which the last one counts: asking twice does no harm.
    private func askedAgainWhereLost(_ loginToken: Secret) async throws(LegacyProblem) -> RenewedToken {
        do {
            return try await exchange.renew(with: loginToken)
        } catch {
            guard case .transport(let problem) = error, problem.fate != .notSent else { throw error }
            return try await exchange.renew(with: loginToken)
        }
    }

    /// Signs in with what is remembered. Where nothing is, the session has come to its end.
    private func remembered(in now: LegacyStore.Found) async throws(LegacyProblem) -> LegacySession {
        guard remembering == .whatSignsIn, let door = exchange.server.login, let remembered = now.kept.remembered,
            remembered.rung == door.rung
        else {
            if let session = now.kept.session { _ = try end(session, .ranOut) }
            throw .notSignedIn
        }
        do {
            let answer = try await exchange.logIn(remembered.account, remembered.value, at: door)
            return LegacySession(remembered.account, answer)
        } catch {
            guard case .wrongCredentials = error else { throw error }
            if try write(LegacyKept(), expecting: now.expectation) { stand(.signedOut(.credentialsRefused)) }
            throw error
        }
    }
}

extension Notice {
    /// `-100` and `-101` are about the login token, where that is what was sent.
    fileprivate var isOver: Bool { code == "session-ended" || code == "token-expired" }
}
