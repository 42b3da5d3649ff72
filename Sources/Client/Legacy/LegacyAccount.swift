import CountersignSchemes
import CountersignSeal
import CountersignVault

/// Who is signed in at a legacy server. What it knows is in the vault before anybody hears of it, and every change names the version
/// that it read: a renewal that comes late cannot bring back a user who has signed out.
package actor LegacyAccount {
    let exchange: LegacyExchange
    /// How requests are signed.
    package nonisolated var signing: LegacySigning { exchange.server.signing }
    let store: LegacyStore
    let remembering: Remembering
    private let keeping: Keeping
    private let announce: @Sendable (LegacyStanding) -> Void

    private var found: LegacyStore.Found?
    /// Whatever the stop says.
    private(set) var standing: LegacyStanding?
    /// Nothing is sent until ``resume()``, whatever becomes of the session meanwhile.
    private var stop: Notice?
    private var announced: LegacyStanding?
    /// How often the user has signed out, here or in another process: a login that was on its way then is thrown away when it comes.
    private var logOuts = 0
    /// Opens what is sealed; nil until somebody has shown that he is there.
    var sealKey: LegacySealKey?
    /// Bound to presence, and to seal the next login's session.
    var nextKey: LegacySealKey?
    var renewal: Renewal?

    /// What outlives a session.
    package enum Remembering: Sendable {
        case nothing
        /// What signs in again without the user: on the plain rungs the password itself.
        case whatSignsIn
    }

    /// How the session lies in the vault.
    package enum Keeping: Sendable {
        case plain
        /// Under a key that comes out only with somebody present. A session that was kept plain before stays
        /// so until the next login.
        case sealedByPresence
    }

    /// `announce` is told of every change, in their order; it must not wait.
    package init(
        _ exchange: LegacyExchange, _ store: LegacyStore, remembering: Remembering = .nothing,
        keeping: Keeping = .plain, announce: @escaping @Sendable (LegacyStanding) -> Void
    ) {
        self.exchange = exchange
        self.store = store
        self.remembering = remembering
        self.keeping = keeping
        self.announce = announce
    }

    // MARK: What the app does

    /// Signs in. The session that there was is replaced where the server answers with another, and else stays.
    package func logIn(_ name: String, _ password: Secret) async throws(LegacyProblem) {
        try requireTraffic()
        guard let door = exchange.server.login else { throw .notSignable("no way to sign in was named") }
        let value: Secret
        do {
            value = try LoginLadder.kept(password, on: door.rung, door.settings)
        } catch {
            throw .notSignable("\(error)")
        }
        // A vault that cannot be read is found out before the password goes anywhere.
        _ = try reread()
        let before = logOuts
        let lease = try await store.lease()
        defer { lease.release() }
        try requireTraffic()
        _ = try reread()
        guard logOuts == before else { throw .notSignedIn }
        let session: LegacySession
        do {
            session = LegacySession(name, try await exchange.logIn(name, value, at: door))
        } catch {
            throw heeded(error)
        }
        try keep(session, RememberedSignIn(account: name, rung: door.rung, value: value), since: before)
    }

    /// Throws where somebody has signed out since, and writes over whatever else has changed.
    private func keep(
        _ session: LegacySession, _ remembered: RememberedSignIn, since before: Int
    ) throws(LegacyProblem) {
        while true {
            let now = try reread()
            guard logOuts == before else { throw .notSignedIn }
            var kept = now.kept
            kept.session = session
            kept.remembered = remembering == .whatSignsIn ? remembered : nil
            if try write(kept, under: nextKey, expecting: now.expectation) {
                (sealKey, nextKey) = (nextKey ?? sealKey, nil)
                return stand(.active(session))
            }
        }
    }

    /// Goes on with a session that the app's version before this one began, out of its own keychain. Where something is kept here, that
    /// is newer, and stays.
    package func adopt(_ session: LegacySession) throws(LegacyProblem) {
        var kept = LegacyKept()
        kept.session = session
        if try write(kept, under: nextKey, expecting: .absent) {
            (sealKey, nextKey) = (nextKey ?? sealKey, nil)
            stand(.active(session))
        }
    }

    /// What a launch begins with: who was signed in is so again. A token that ran out by the device's clock is renewed, and what is
    /// remembered signs in; being offline ends nothing. Lifts the stop for an update: who asks again has handled it.
    @discardableResult
    package func resume() async throws(LegacyProblem) -> LegacyStanding {
        stop = nil
        return try await takeUp()
    }

    /// The same under a stop that stays.
    func takeUp() async throws(LegacyProblem) -> LegacyStanding {
        let kept = try forgetUnwanted()
        show()
        guard let session = kept.session else {
            if kept.remembered != nil { try await renew(leaving: nil) }
            return shown ?? .signedOut(.nobodyWas)
        }
        stand(.active(session))
        if let expires = session.expires, expires <= exchange.time {
            do {
                try await renew(leaving: session)
            } catch {
                // What ends the session has been said by then; all else is for the next request to find out.
                if case .vault = error { throw error }
            }
        }
        return shown ?? .active(session)
    }

    /// What is kept, without what an earlier version of the app kept to sign in with, where this one does not ask for that.
    private func forgetUnwanted() throws(LegacyProblem) -> LegacyKept {
        while true {
            let now = try reread()
            guard remembering == .nothing, now.kept.remembered != nil else { return now.kept }
            var kept = now.kept
            kept.remembered = nil
            if try write(kept, expecting: now.expectation) { return kept }
        }
    }

    /// Forgets all that is kept here. Legacy servers have no route for it: their session ends with the next login, or runs out.
    package func logOut() throws(LegacyProblem) {
        logOuts += 1
        try write(LegacyKept(), expecting: .anything)
        (sealKey, nextKey) = (nil, nil)
        stand(.signedOut(.byUser))
    }

    // MARK: What requests need

    /// The session that requests go under.
    func session() throws(LegacyProblem) -> LegacySession {
        try requireTraffic()
        let found = try known()
        if isLocked(found) { throw .presenceNeeded }
        guard let session = found.kept.session else { throw .notSignedIn }
        return session
    }

    /// The vault could not be opened: what that means for who is signed in.
    package func learn(_ problem: VaultProblem) { stand(.unreadable(problem)) }

    /// Throws while nothing is to be sent.
    func requireTraffic() throws(LegacyProblem) {
        if let stop { throw .updateRequired(stop) }
    }

    /// Takes away the session of whose token a request was told that it is over, and answers whether none is left.
    func end(_ used: LegacySession, _ why: LegacyEnd) throws(LegacyProblem) -> Bool {
        while true {
            let now = try reread()
            guard now.kept.session?.mark == used.mark else { return now.kept.session == nil }
            var kept = now.kept
            kept.session = nil
            guard try write(kept, expecting: now.expectation) else { continue }
            stand(.signedOut(why))
            return true
        }
    }

    func heeded(_ problem: LegacyProblem) -> LegacyProblem {
        if case .updateRequired(let notice) = problem {
            stop = notice
            show()
        }
        return problem
    }

    // MARK: What is kept

    func known() throws(LegacyProblem) -> LegacyStore.Found {
        if let found { return found }
        return try reread()
    }

    /// Finds out what another process did, too.
    func reread() throws(LegacyProblem) -> LegacyStore.Found {
        let now: LegacyStore.Found
        do {
            now = try store.read(opening: sealKey)
        } catch {
            if case .vault(let problem) = error { stand(.unreadable(problem)) }
            throw error
        }
        // Of what this process erases it knows: this was another, and there a user who signed out.
        if let found, !found.kept.isEmpty, now.version == nil { logOuts += 1 }
        found = now
        guard !isLocked(now) else {
            stand(.presenceNeeded)
            return now
        }
        switch (standing, now.kept.session) {
        case (.signedOut, nil): break
        case (.active, nil): stand(.signedOut(.byUser))
        case (_, nil): stand(.signedOut(.nobodyWas))
        case (_, let session?): stand(.active(session))
        }
        return now
    }

    /// False, and nothing done, where somebody else was faster.
    @discardableResult
    func write(
        _ kept: LegacyKept, under key: LegacySealKey? = nil, expecting expectation: Vault.Expectation
    ) throws(LegacyProblem) -> Bool {
        var key = key ?? sealKey
        switch (keeping, key, found) {
        case (.plain, _, _): key = nil
        case (.sealedByPresence, nil, let found?) where found.version != nil && found.form == .plain: break
        case (.sealedByPresence, nil, _): guard kept.isEmpty else { throw .presenceNeeded }
        case (.sealedByPresence, _, _): break
        }
        guard let written = try store.write(kept, under: key, expecting: expectation) else { return false }
        found = written
        return true
    }

    /// Where presence is not asked for any more, nobody is signed in by what only presence opens.
    func isLocked(_ found: LegacyStore.Found) -> Bool {
        if case (.sealedByPresence, .locked) = (keeping, found.form) { true } else { false }
    }

    func stand(_ new: LegacyStanding) {
        standing = new
        show()
    }

    /// What the app is to show: under a stop that, whoever is signed in.
    private var shown: LegacyStanding? { stop.map { .updateRequired($0.updateURL) } ?? standing }

    private func show() {
        guard let shown, shown != announced else { return }
        announced = shown
        announce(shown)
    }
}

extension LegacyStanding {
    static func active(_ session: LegacySession) -> LegacyStanding {
        .active(account: session.account, userID: session.userID)
    }

    fileprivate static func unreadable(_ problem: VaultProblem) -> LegacyStanding {
        if case .locked = problem { .locked } else { .unavailable }
    }
}

extension LegacySession {
    init(_ account: String, _ answer: LoggedIn) {
        self.init(
            account: account, userID: answer.userID, token: answer.token, loginToken: answer.loginToken,
            expires: answer.expires)
    }
}
