import CountersignClient
import CountersignMemory
import CountersignSeal
import CountersignTransport
import CountersignTrust
import CountersignVault
import CountersignWire

/// Connects an app to a server that is **not Countersign's yet**: signs requests by the server's scheme,
/// signs users in by its login, and renews their token in the background. For a team that changes the app
/// first and the server later; the same client then works with a gateway that serves the scheme, until
/// ``CountersignClient`` replaces it.
///
/// ```swift
/// let client = try LegacyClient(
///     scheme: .formMD5(appID: "…", privateKey: "…", platform: "ios", version: "3.1"),
///     baseURL: "https://api.example.com", login: LegacyLogin(.md5Salt("…")), vault: .platform,
///     trust: [.host("api.example.com", pins: ["sha256/…"], backups: ["sha256/…"])])
/// try await client.logIn("anna", password)
/// let (data, response) = try await client.data(for: APIRequest("/orders"))
/// ```
///
/// Such a server signs no response. Only TLS protects it, and if no certificate is pinned, any party with a
/// certificate that the machine trusts for this host can end a session, stop the app by asking for an update,
/// or have a request sent a second time by saying that its token has expired. ``CountersignClient`` believes
/// none of that without a signature.
public final class LegacyClient: Sendable {
    let base: BaseURL
    let options: LegacyOptions
    let account: LegacyAccount
    let calls: LegacyCalls
    let vault: LegacyVault
    let carrier: any RequestTransport
    let report: LegacyStatePublisher
    let names: CallNames
    let hints: UpdateHints
    /// Nil if no presence is needed.
    let presence: LegacyPresence?
    let kept: LegacyCookies

    /// Opens nothing, and sends nothing: the vault is read at the first call.
    /// - Parameters:
    ///   - scheme: how requests are signed.
    ///   - baseURL: `https://HOST`, with a port and a path if needed.
    ///   - login: how users sign in; nil if they do not, or if the app supplies an existing session
    ///     (``adopt(_:)``).
    ///   - vault: where the session is stored.
    ///   - trust: the servers to accept.
    ///   - options: everything else.
    public init(
        scheme: LegacyScheme, baseURL: String, login: LegacyLogin? = nil, vault: VaultPlace, trust: Trust,
        options: LegacyOptions = LegacyOptions()
    ) throws(CountersignError) {
        let parts = try LegacyComposition(
            scheme: scheme, baseURL: baseURL, login: login, vault: vault, trust: trust, options: options)
        (base, account, self.vault, carrier) = (parts.base, parts.account, parts.vault, parts.carrier)
        (report, presence, self.options) = (parts.report, parts.presence, options)
        names = CallNames(host: parts.base.origin.host.description)
        kept = parts.cookies
        hints = UpdateHints(parts.report.events)
        calls = LegacyCalls(account)
    }

    /// Call this before the account reads anything from the vault.
    func open() async throws(ClientOperationError) {
        do throws(VaultError) {
            try await vault.open()
        } catch {
            await account.reportVaultFailure(error)
            throw ClientOperationError(error)
        }
    }

    deinit { report.finish() }

    /// What to show now.
    public var state: CountersignState { report.state }

    /// What to show, from now on: the current state first, then each change. For any number of listeners.
    /// Ends when the client does.
    public var states: AsyncStream<CountersignState> { report.states }

    /// What the client does, from now on, for a log. For any number of listeners; a slow listener loses the
    /// oldest of more than a thousand waiting events. Holds no secrets: a path comes without its query, which
    /// contains the token with form-md5. Ends when the client does.
    public var events: AsyncStream<CountersignEvent> { report.events.stream() }

    /// The cookies that the server has set; empty unless ``LegacyOptions/cookies`` keeps them.
    public var cookies: CookieStore { kept.jar.store }
}

extension LegacyClient {
    /// Signs in. Does not store the password, unless
    /// ``LegacyOptions/Remembering/sessionAndWhatSignsInLikeThePassword`` says so.
    ///
    /// Throws ``CountersignError/wrongCredentials`` for a wrong name or password; the account that was signed
    /// in before stays so. With ``LegacyOptions/Gate/atLaunch(_:)`` the session's key is bound to presence
    /// before anything is sent: throws ``CountersignError/notPresent(_:)`` if the user does not confirm their
    /// presence.
    public func logIn(_ name: String, _ password: String) async throws(CountersignError) {
        let secret = Secret(copying: Array(password.utf8).span)
        try await keeping { (account) async throws(ClientOperationError) in
            try await account.logIn(name, password: secret)
        }
    }

    /// Call this at launch: restores the last login and returns what to show.
    ///
    /// Renews a token that has expired by the device's clock; if the device is offline, the session stands.
    /// Also allows requests again after ``CountersignState/updateRequired(url:)``.
    @discardableResult
    public func resume() async -> CountersignState {
        do throws(ClientOperationError) {
            try await open()
            try await account.resume()
        } catch {
            // The state shows what the error means for the session.
        }
        return state
    }

    /// Removes everything that is stored here, for good, whether or not the server can be reached. Then
    /// tells the server, if ``LegacyOptions/logoutPath`` names its path: within twenty seconds, and once
    /// more if the response is lost. The client does not keep the tokens to tell it later: a session of
    /// which the server was not told ends with the next login, or expires. So does one that
    /// ``LegacyOptions/gate`` still locks, since its token cannot be read.
    @discardableResult
    public func logOut() async throws(CountersignError) -> LogOutResult {
        let former: LegacySession?
        let cookie = options.logoutPath.flatMap { kept.field(for: $0) }
        do throws(ClientOperationError) {
            try await open()
            let key = try? await account.keyName()
            former = try await account.logOut()
            kept.removeAll()
            try await forgetKept()
            if let key { await presence?.remove(key) }
        } catch {
            throw CountersignError(error)
        }
        guard let former, let path = options.logoutPath else { return .serverWasNotTold }
        return await tellServer(ofEndOf: former, at: path, cookie: cookie)
    }

    /// Whether the server knows that a session has ended; on this device it has.
    public enum LogOutResult: Sendable, Hashable {
        /// It has answered so. Legacy servers sign no response.
        case serverKnows
        /// It has no path for that, could not be reached, or has refused.
        case serverWasNotTold
    }

    /// Events show it like a call of the app.
    private func tellServer(
        ofEndOf session: LegacySession, at path: String, cookie: String?
    ) async -> LogOutResult {
        let call = names.next(.post, path: path)
        let start = options.clock.monotonic()
        report.events.tell(.began(call))
        do throws(ClientOperationError) {
            let response = try await account.endAtServer(session, cookie: cookie)
            let after = options.clock.elapsed(since: start)
            report.events.tell(.answered(call, status: response.status, signer: .nobody, after: after))
            let code = LegacyRefusals.code(of: response)
            // A token that has ended before is refused so by some servers.
            let isOver = code == "session-ended" || code == "token-expired"
            return isOver || response.status < 300 && code == nil ? .serverKnows : .serverWasNotTold
        } catch {
            let after = options.clock.elapsed(since: start)
            report.events.tell(.failed(call, CountersignEvent.Failure(CountersignError(error)), after: after))
            return .serverWasNotTold
        }
    }

    /// Adopts the session that the app's earlier version has stored, so that its users need not sign in
    /// again. Does nothing if a session is stored here already. Remove it from its old place afterwards (see
    /// `Migration`).
    public func adopt(_ session: LegacySessionRemains) async throws(CountersignError) {
        let session = session.session
        do throws(ClientOperationError) {
            try await open()
            guard try await account.isEmpty() else { return }
        } catch {
            throw CountersignError(error)
        }
        try await keeping { (account) async throws(ClientOperationError) in try await account.adopt(session) }
    }

    /// Removes what another process has stored since, if that process remembers more than this one.
    private func forgetKept() async throws(ClientOperationError) {
        do throws(VaultError) {
            try await vault.forgetKept()
        } catch {
            throw ClientOperationError(error)
        }
    }
}

/// A session of another client's. Source: docs/protocol.md, "Bearer sessions".
public struct LegacySessionRemains: Sendable {
    let session: LegacySession

    /// - Parameters:
    ///   - account: the user's name.
    ///   - userID: `userId`, over 0.
    ///   - token: what goes with each request: visible ASCII.
    ///   - loginToken: gets new tokens; nil if the server issues no login tokens.
    public init(account: String, userID: Int64, token: String, loginToken: String? = nil)
        throws(CountersignError)
    {
        guard userID > 0 else { throw .misuse("session: user id: expected a number over 0") }
        for token in [token, loginToken ?? "-"] {
            guard !token.isEmpty, token.utf8.allSatisfy({ $0 > 0x20 && $0 < 0x7F }) else {
                throw .misuse("session: token: expected visible ASCII")
            }
        }
        func secret(_ text: String) -> Secret { Secret(copying: Array(text.utf8).span) }
        session = LegacySession(
            account: account, userID: userID, token: secret(token), loginToken: loginToken.map(secret),
            expires: nil)
    }
}

extension LegacySessionRemains: CustomStringConvertible, CustomReflectable {
    /// The account. The tokens are never printed.
    public var description: String { "session of \(session.account)" }

    /// A dump shows no more than a log does.
    public var customMirror: Mirror { Mirror(self, children: ["account": session.account]) }
}

/// Publishes a legacy client's state and events.
final class LegacyStatePublisher: Sendable {
    let events: Broadcast<CountersignEvent>
    private let shown = Broadcast<CountersignState>(.latest, latest: .unavailable)
    private let isPresenceNeeded = Locked(false)

    init(_ events: Broadcast<CountersignEvent>) { self.events = events }

    var state: CountersignState { shown.latest ?? .unavailable }

    var states: AsyncStream<CountersignState> { shown.stream() }

    /// Those that follow the state: a request that waits is one.
    var listenerCount: Int { shown.listenerCount }

    /// Takes the next status from the client module: each differs from the one before.
    func take(_ status: LegacySessionStatus) {
        let isNeeded = status == .presenceNeeded
        let wasNeeded = isPresenceNeeded.with { known in
            defer { known = isNeeded }
            return known
        }
        if isNeeded, !wasNeeded { events.tell(.presenceNeeded) }
        let state = CountersignState(status)
        shown.tell { _ in state }
        events.tell(.state(CountersignEvent.State(state)))
    }

    func finish() {
        shown.finish()
        events.finish()
    }
}
