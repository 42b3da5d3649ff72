import CountersignClient
import CountersignMemory
import CountersignSchemes
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
///
/// Requests (``APISending``) differ from those of ``CountersignClient``:
///
/// - If the token has expired (`-101`), the client renews it, once for all requests that find out, and sends
///   the request again: the server has refused the first copy. It does **not** repeat a request whose
///   response was lost, because these servers cannot recognize a second copy; ``LegacyOptions/retry`` repeats
///   those with a safe method. An `err` of any other code, and any status, is a response.
/// - A request throws ``CountersignError/accountChanged`` instead of being sent again in the name of another
///   account that has signed in meanwhile; ``CountersignError/notSignedIn``, and nothing is sent, if no
///   account is signed in and its caller is the account; ``CountersignError/signedOut(_:)`` for `-100`;
///   ``CountersignError/updateRequired(url:)`` for `-99`, and from then on without sending, until
///   ``resume()``.
/// - The scheme decides how much of an upload is in memory. Without a scheme, and under auth-v2, a body
///   streams without a signature; under auth-v1 it is read once for its MD5, which is signed, and once for
///   each copy that is sent. form-md5 and auth-v4, and all of them for forms, sign its content: it is read
///   into memory, at most ``LegacyOptions/largestAnswer`` bytes. ``APIRequest/Body/once(_:sha256:)`` works if
///   the scheme signs nothing of the body; its digest is not used.
/// - A download's body that may be a refusal (JSON of at most 64 KiB, under any status) is read whole first.
/// - A signed request for another HTTP stack is valid for minutes, and no token is renewed for it.
public final class LegacyClient: APISending {
    let context: CallContext
    let options: LegacyOptions
    let account: LegacyAccount
    let calls: LegacyCalls
    let vault: LegacyVault
    /// Nil if no presence is needed.
    let presence: PresenceSecrets?

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
        let base = try BaseURL(baseURL, encryption: options.encryption)
        let report = StatePublisher()
        context = try CallContext(base, options: options, trust: trust, report: report)
        let server = try LegacyServer(
            scheme: scheme, base: base, login: login, trust: trust, options: options)
        let transport = AuthorityTransport(
            context, refresh: options.renewalPath, largestResponse: options.largestAnswer,
            refusalCode: { LegacyResponseParser.code(of: $0) })
        let clock = options.clock
        let exchange = LegacyExchange(
            server, transport: transport, own: transport, now: { clock.wall() }, random: SystemRandom())
        let store: LegacyStore
        do throws(VaultError) {
            let item = try ItemName(
                service: "countersign legacy \(base.origin.authority)", account: options.app)
            let bound = "\(item.service) key"
            let remembering = SwitchableVault(
                over: vault.vault(owning: [item.service, bound]),
                persistence: options.remembers == .nothing ? .endsWithTheProcess : .outlivesTheProcess)
            self.vault = LegacyVault(remembering, item: item)
            store = LegacyStore(remembering.vault, item: item)
            // A session that ends with the process needs no gate at the next launch.
            if case .atLaunch(let person) = options.gate, options.remembers != .nothing {
                presence = PresenceSecrets(presence: person, vault: remembering.vault, service: bound)
            } else {
                presence = nil
            }
        } catch {
            throw CountersignError(error)
        }
        options.log.follow(report.events.stream())
        let jar = context.jar
        let login = Array((login?.route.path ?? login?.route.rung.endpoint.path ?? "/").utf8)
        account = LegacyAccount(
            exchange, store: store,
            remembering: options.remembers == .sessionAndWhatSignsInLikeThePassword ? .whatSignsIn : .nothing,
            sessionStorage: presence == nil ? .plain : .sealedByPresence,
            reportSignIn: { jar.begin($0, target: login) }
        ) { status in
            jar.follow(status)
            let state = CountersignState(status)
            report.publish(state, isPresenceNeeded: status == .presenceNeeded)
        }
        self.options = options
        calls = LegacyCalls(account)
    }

    /// Opens the vault, runs an operation on the account and translates its errors for the app.
    func run<Result: Sendable>(
        _ operation: @Sendable (LegacyAccount) async throws(ClientOperationError) -> Result
    ) async throws(CountersignError) -> Result {
        do throws(ClientOperationError) {
            try await open()
            return try await operation(account)
        } catch {
            throw CountersignError(error)
        }
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

    var report: StatePublisher { context.report }

    /// Signs by the server's scheme.
    public var sender: APISender { APISender(engine: self) }

    /// What to show now.
    public var state: CountersignState { report.state }

    /// What to show, from now on: the current state first, then each change. For any number of listeners.
    /// Ends when the client does.
    public var states: AsyncStream<CountersignState> { report.states }
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
        // The state shows what an error means for the session.
        _ = try? await run { (account) async throws(ClientOperationError) in try await account.resume() }
        return state
    }

    /// Removes everything that is stored here, for good, whether or not the server can be reached. Then
    /// tells the server, if ``LegacyOptions/logoutPath`` names its path: within twenty seconds, and once
    /// more if the response is lost. The client does not keep the tokens to tell it later: a session of
    /// which the server was not told ends with the next login, or expires. So does one that
    /// ``LegacyOptions/gate`` still locks, since its token cannot be read.
    @discardableResult
    public func logOut() async throws(CountersignError) -> LogOutResult {
        let cookie = options.logoutPath.flatMap { context.jar.field(target: Array($0.utf8)) }
        let former = try await run { (account) async throws(ClientOperationError) in
            let key = try? await account.keyName()
            let former = try await account.logOut()
            context.jar.store.belong(to: nil)
            context.jar.store.removeAll()
            try await forgetKept()
            if let key { await presence?.remove(key) }
            return former
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
        let call = context.names.next(.post, path: path)
        let start = options.clock.monotonic()
        report.events.tell(.began(call))
        do throws(ClientOperationError) {
            let response = try await account.endAtServer(session, cookie: cookie)
            let after = options.clock.elapsed(since: start)
            report.events.tell(.answered(call, status: response.status, signer: .nobody, after: after))
            let code = LegacyResponseParser.code(of: response)
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
        let isEmpty = try await run { (account) async throws(ClientOperationError) in
            try await account.isEmpty()
        }
        guard isEmpty else { return }
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
