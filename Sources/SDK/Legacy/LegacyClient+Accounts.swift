import CountersignClient
import CountersignSeal
import CountersignVault

extension LegacyClient {
    /// Signs in. The password is not kept, unless
    /// ``LegacyOptions/Remembering/sessionAndWhatSignsInLikeThePassword`` says so.
    ///
    /// Throws ``CountersignError/wrongCredentials`` for a wrong name or password; who was signed in before
    /// stays so. With ``LegacyOptions/Gate/atLaunch(_:)`` the session's key is bound to presence before
    /// anything is sent: ``CountersignError/notPresent(_:)`` where nobody shows that he is there.
    public func logIn(_ name: String, _ password: String) async throws(CountersignError) {
        let secret = Secret(copying: Array(password.utf8).span)
        try await keeping { (account) async throws(LegacyProblem) in try await account.logIn(name, secret) }
    }

    /// To be called at launch: signs in silently who was signed in last time, and says what to show.
    ///
    /// A token that ran out by the device's clock is renewed; of who is offline the session stands. Also lets requests go out again
    /// after ``CountersignState/updateRequired(url:)``.
    @discardableResult
    public func resume() async -> CountersignState {
        do throws(LegacyProblem) {
            try await open()
            try await account.resume()
        } catch {
            // What it means for the session is in the state.
        }
        return state
    }

    /// Forgets all that is kept here, for good. Servers from before have no route for it: there, the session ends with the next login,
    /// or runs out. Where one has, send it first, as any request.
    public func logOut() async throws(CountersignError) {
        do throws(LegacyProblem) {
            try await open()
            let key = try? await account.keyName()
            try await account.logOut()
            try await forgetKept()
            if let key { await presence?.remove(key) }
        } catch {
            throw CountersignError(error)
        }
    }

    /// What the app's version before this one has kept of a session, so that its users need not sign in again. Does nothing where
    /// a session is kept here already. Erase it where it lay (see `Migration`).
    public func adopt(_ session: LegacySessionRemains) async throws(CountersignError) {
        let session = session.session
        do throws(LegacyProblem) {
            try await open()
            guard try await account.isEmpty() else { return }
        } catch {
            throw CountersignError(error)
        }
        try await keeping { (account) async throws(LegacyProblem) in try await account.adopt(session) }
    }

    /// What another process has kept since, which remembers more than this one does.
    private func forgetKept() async throws(LegacyProblem) {
        do throws(VaultProblem) {
            try await vault.forgetKept()
        } catch {
            throw .vault(error)
        }
    }
}

/// A session of another client's. Source: legacy, L6.
public struct LegacySessionRemains: Sendable {
    let session: LegacySession

    /// - Parameters:
    ///   - account: the user's name.
    ///   - userID: `userId`, over 0.
    ///   - token: what goes with each request: visible ASCII.
    ///   - loginToken: what gets new tokens; nil where there is none.
    public init(account: String, userID: Int64, token: String, loginToken: String? = nil) throws(CountersignError) {
        guard userID > 0 else { throw .misuse("session: user id: expected a number over 0") }
        for token in [token, loginToken ?? "-"] {
            guard !token.isEmpty, token.utf8.allSatisfy({ $0 > 0x20 && $0 < 0x7F }) else {
                throw .misuse("session: token: expected visible ASCII")
            }
        }
        func secret(_ text: String) -> Secret { Secret(copying: Array(text.utf8).span) }
        session = LegacySession(
            account: account, userID: userID, token: secret(token), loginToken: loginToken.map(secret), expires: nil)
    }
}

extension LegacySessionRemains: CustomStringConvertible, CustomReflectable {
    /// Whose it is. The tokens are never printed.
    public var description: String { "session of \(session.account)" }

    /// The same for who dumps it.
    public var customMirror: Mirror { Mirror(self, children: ["account": session.account]) }
}
