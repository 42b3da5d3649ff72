import CountersignSchemes
import CountersignSeal
import CountersignVault
import CountersignWire

/// The login at a legacy server, as far as it is known here.
package enum LegacySessionStatus: Sendable, Equatable {
    /// Carries how the last session ended; nil if nothing is stored here.
    case signedOut(SessionEndRecord?)
    case active(account: String, userID: Int64)
    /// The vault opens when the device is unlocked.
    case locked
    /// The session leaves the vault only when the user is present.
    case presenceNeeded
    /// The stored state cannot be read now: nothing is concluded from it.
    case unavailable
    /// Nothing is sent until ``LegacyAccount/resume()``; the link leads to the new version.
    case updateRequired(String?)
}

/// The login at a legacy server. A change is in the vault before any listener learns of it, and every change
/// names the version that it read: a late renewal cannot bring back a user who has signed out.
package actor LegacyAccount {
    let exchange: LegacyExchange
    /// How requests are signed.
    package nonisolated var signing: LegacySigningMethod { exchange.server.signing }
    let store: LegacyStore
    let remembering: Remembering
    private let sessionStorage: SessionStorage
    private let announce: @Sendable (LegacySessionStatus) -> Void
    private let reportSignIn: @Sendable (LegacySignIn) -> Void

    private var found: LegacyStore.Found?
    /// The status without the stop for an update.
    private(set) var status: LegacySessionStatus?
    /// If set, nothing is sent until ``resume()``, whatever happens to the session meanwhile.
    private var stop: RefusalNotice?
    private var announced: LegacySessionStatus?
    /// How often the user has signed out, here or in another process: the client discards a login whose
    /// response comes after that.
    private var logOuts = 0
    /// Opens what is sealed; nil until the user has confirmed their presence.
    var sealKey: LegacySealKey?
    /// Bound to presence; seals the next login's session.
    var nextKey: LegacySealKey?
    var renewal: Renewal?

    /// What outlives a session.
    package enum Remembering: Sendable {
        case nothing
        /// Credentials that sign in again without the user: on the plain rungs the password itself.
        case whatSignsIn
    }

    /// How the vault stores the session.
    package enum SessionStorage: Sendable {
        case plain
        /// Sealed under a key that is released only when the user is present. A session that was stored
        /// without a seal stays so until the next login.
        case sealedByPresence
    }

    /// `announce` receives every change, in order; `reportSignIn` each login that began a session, before the
    /// change that it brings. Neither may wait.
    package init(
        _ exchange: LegacyExchange, store: LegacyStore, remembering: Remembering = .nothing,
        sessionStorage: SessionStorage = .plain,
        reportSignIn: @escaping @Sendable (LegacySignIn) -> Void = { _ in },
        announce: @escaping @Sendable (LegacySessionStatus) -> Void
    ) {
        self.reportSignIn = reportSignIn
        self.exchange = exchange
        self.store = store
        self.remembering = remembering
        self.sessionStorage = sessionStorage
        self.announce = announce
    }

    // MARK: What the app does

    /// Signs in. If the server answers with another session, that one replaces the stored one.
    package func logIn(_ name: String, password: Secret) async throws(ClientOperationError) {
        try requireTraffic()
        guard let route = exchange.server.login else { throw .incomplete("no way to sign in was named") }
        let value: Secret
        do {
            value = try LoginLadder.storedValue(of: password, on: route.rung, settings: route.settings)
        } catch {
            throw .incomplete("\(error)")
        }
        // Finds out whether the vault can be read before the password is sent.
        _ = try readVault()
        let before = logOuts
        let lease = try await store.lease()
        defer { lease.release() }
        try requireTraffic()
        _ = try readVault()
        guard logOuts == before else { throw .notSignedIn }
        let answer: LegacyLoginResponse
        do {
            answer = try await exchange.logIn(name, value: value, at: route)
        } catch {
            throw recordingUpdateStop(error)
        }
        try keep(
            LegacySignIn(LegacySession(account: name, response: answer), by: answer),
            remembering: RememberedSignIn(account: name, rung: route.rung, value: value),
            since: before)
    }

    /// Throws if a user has signed out since; overwrites every other change.
    private func keep(
        _ signIn: LegacySignIn, remembering remembered: RememberedSignIn, since before: Int
    ) throws(ClientOperationError) {
        let session = signIn.session
        while true {
            let now = try readVault()
            guard logOuts == before else { throw .notSignedIn }
            var kept = now.kept
            kept.session = session
            kept.remembered = remembering == .whatSignsIn ? remembered : nil
            if try write(kept, under: nextKey, expecting: now.expectation) {
                (sealKey, nextKey) = (nextKey ?? sealKey, nil)
                return begin(signIn)
            }
        }
    }

    /// Adopts a session that an earlier version of the app began, from that version's own keychain. A session
    /// that is already stored here is newer, and stays.
    package func adopt(_ session: LegacySession) throws(ClientOperationError) {
        var kept = LegacyPersistedState()
        kept.session = session
        if try write(kept, under: nextKey, expecting: .absent) {
            (sealKey, nextKey) = (nextKey ?? sealKey, nil)
            setStatus(.active(session))
        }
    }

    /// Restores the login at launch. Renews a token that has expired by the device's clock, and signs in with
    /// remembered credentials; being offline ends nothing. Lifts the stop for an update: the app that calls
    /// this has handled it.
    @discardableResult
    package func resume() async throws(ClientOperationError) -> LegacySessionStatus {
        stop = nil
        return try await restoreLogin()
    }

    /// The same, without lifting the stop.
    func restoreLogin() async throws(ClientOperationError) -> LegacySessionStatus {
        let kept = try forgetUnwanted()
        show()
        guard let session = kept.session else {
            if kept.remembered != nil { try await renew(leaving: nil) }
            return shown ?? .signedOut(nil)
        }
        setStatus(.active(session))
        if let expires = session.expires, expires <= exchange.time {
            do {
                try await renew(leaving: session)
            } catch {
                // The client has reported the end of a session by now; the next request finds any other
                // error.
                switch error {
                case .vaultLocked, .vaultFailed: throw error
                default: break
                }
            }
        }
        return shown ?? .active(session)
    }

    /// The stored state. Removes credentials that an earlier version of the app stored to sign in again if
    /// this one does not ask for that.
    private func forgetUnwanted() throws(ClientOperationError) -> LegacyPersistedState {
        while true {
            let now = try readVault()
            guard remembering == .nothing, now.kept.remembered != nil else { return now.kept }
            var kept = now.kept
            kept.remembered = nil
            if try write(kept, expecting: now.expectation) { return kept }
        }
    }

    /// Removes everything that is stored here. Returns the session that the server is to be told of by
    /// ``endAtServer(_:cookie:)``; nil if it has no path for that, or if no token can be read.
    @discardableResult
    package func logOut() throws(ClientOperationError) -> LegacySession? {
        logOuts += 1
        // A vault that cannot be read does not keep the user signed in.
        let former = (try? store.read(opening: sealKey))?.kept.session
        try write(LegacyPersistedState(), expecting: .anything)
        (sealKey, nextKey) = (nil, nil)
        setStatus(.signedOut(.byUser))
        guard let former, former.token ?? former.loginToken != nil, exchange.server.tokens.logoutPath != nil
        else { return nil }
        return former
    }

    // MARK: What requests need

    /// The session that requests use.
    func session() throws(ClientOperationError) -> LegacySession {
        try requireTraffic()
        let found = try known()
        if isLocked(found) { throw .presenceNeeded }
        guard let session = found.kept.session else { throw .notSignedIn }
        return session
    }

    /// Reports that the vault could not be opened.
    package func reportVaultFailure(_ problem: VaultError) { setStatus(.unreadable(problem)) }

    /// Throws while the client must not send anything.
    func requireTraffic() throws(ClientOperationError) {
        if let stop { throw .updateRequired(stop) }
    }

    /// Removes the session of the token that the server refused for good; returns whether no session is left.
    func end(_ used: LegacySession, reason why: SessionEndRecord) throws(ClientOperationError) -> Bool {
        while true {
            let now = try readVault()
            guard now.kept.session?.mark == used.mark else { return now.kept.session == nil }
            var kept = now.kept
            kept.session = nil
            guard try write(kept, expecting: now.expectation) else { continue }
            setStatus(.signedOut(why))
            return true
        }
    }

    /// Returns `problem`. If it says that an update is required, stops all traffic first.
    func recordingUpdateStop(_ problem: ClientOperationError) -> ClientOperationError {
        if case .updateRequired(let notice) = problem {
            stop = notice
            show()
        }
        return problem
    }

    // MARK: What is kept

    func known() throws(ClientOperationError) -> LegacyStore.Found {
        if let found { return found }
        return try readVault()
    }

    /// Reads the vault, so that it finds other processes' changes.
    func readVault() throws(ClientOperationError) -> LegacyStore.Found {
        let now: LegacyStore.Found
        do {
            now = try store.read(opening: sealKey)
        } catch {
            switch error {
            case .vaultLocked: setStatus(.locked)
            case .vaultFailed: setStatus(.unavailable)
            default: break
            }
            throw error
        }
        // This process knows of what it erases itself: another process did this, for a user who signed out
        // there.
        if let found, !found.kept.isEmpty, now.version == nil { logOuts += 1 }
        found = now
        guard !isLocked(now) else {
            setStatus(.presenceNeeded)
            return now
        }
        switch (status, now.kept.session) {
        case (.signedOut, nil): break
        case (.active, nil): setStatus(.signedOut(.byUser))
        case (_, nil): setStatus(.signedOut(nil))
        case (_, let session?): setStatus(.active(session))
        }
        return now
    }

    /// Returns false, and does nothing, if another writer came first.
    @discardableResult
    func write(
        _ kept: LegacyPersistedState, under key: LegacySealKey? = nil,
        expecting expectation: Vault.Expectation
    ) throws(ClientOperationError) -> Bool {
        var key = key ?? sealKey
        switch (sessionStorage, key, found) {
        case (.plain, _, _): key = nil
        case (.sealedByPresence, nil, let found?) where found.version != nil && found.form == .plain: break
        case (.sealedByPresence, nil, _): guard kept.isEmpty else { throw .presenceNeeded }
        case (.sealedByPresence, _, _): break
        }
        guard let written = try store.write(kept, under: key, expecting: expectation) else { return false }
        found = written
        return true
    }

    /// If the app no longer asks for presence, a session that only presence opens counts as signed out.
    func isLocked(_ found: LegacyStore.Found) -> Bool {
        if case (.sealedByPresence, .locked) = (sessionStorage, found.form) { true } else { false }
    }

    /// Announces a session that a login began.
    func begin(_ signIn: LegacySignIn) {
        reportSignIn(signIn)
        setStatus(.active(signIn.session))
    }

    func setStatus(_ new: LegacySessionStatus) {
        status = new
        show()
    }

    /// What the app shows: the stop for an update if there is one, else the status.
    private var shown: LegacySessionStatus? { stop.map { .updateRequired($0.updateURL) } ?? status }

    private func show() {
        guard let shown, shown != announced else { return }
        announced = shown
        announce(shown)
    }
}

extension LegacySessionStatus {
    static func active(_ session: LegacySession) -> LegacySessionStatus {
        .active(account: session.account, userID: session.userID)
    }

    fileprivate static func unreadable(_ problem: VaultError) -> LegacySessionStatus {
        if case .locked = problem { .locked } else { .unavailable }
    }
}

/// A login that began a session: the session, and the server's response.
package struct LegacySignIn: Sendable {
    package let session: LegacySession
    package let response: Response

    init(_ session: LegacySession, by answer: LegacyLoginResponse) {
        (self.session, response) = (session, answer.response)
    }
}

extension LegacySession {
    init(account: String, response answer: LegacyLoginResponse) {
        self.init(
            account: account, userID: answer.userID, token: answer.token, loginToken: answer.loginToken,
            expires: answer.expires)
    }
}
