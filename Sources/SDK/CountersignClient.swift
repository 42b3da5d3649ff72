import CountersignClient
import CountersignSchemes
import CountersignSeal
import CountersignTransport
import CountersignTrust
import CountersignVault
import CountersignWire

/// Connects an app to its server: signs each request in the name of the app's version and of the signed-in
/// account, renews the session in the background, and acts only on what the server has signed.
///
/// ```swift
/// let key = try ReleaseKey(id: "r_…", secret: "…", authorityKey: "…")
/// let client = try CountersignClient(
///     release: key, baseURL: "https://api.example.com", vault: .platform,
///     trust: [.host("**.example.com", pins: ["sha256/…"], backups: ["sha256/…"])])
/// await client.resume()
/// let (data, response) = try await client.data(for: APIRequest("/orders"))
/// ```
///
/// Create one for each server and share it in the whole app. A request in progress outlives the value that
/// sent it.
public final class CountersignClient: APISending {
    let core: ClientCore
    /// Signs for the device if its key is bound to presence and the user is present: set in the clients that
    /// ``withPresence(_:_:)`` passes to its closure.
    let signer: PresenceSigner?

    /// Opens nothing, and sends nothing: the vault is read at the first call.
    /// - Parameters:
    ///   - release: the key of this version of the app.
    ///   - baseURL: `https://HOST`, with a port and a path if needed. The client neither signs nor sends
    ///     requests for other URLs.
    ///   - vault: where the session is stored.
    ///   - trust: the servers to accept.
    ///   - options: everything else.
    public convenience init(
        release: ReleaseKey, baseURL: String, vault: VaultPlace, trust: Trust,
        options: CountersignOptions = CountersignOptions()
    ) throws(CountersignError) {
        self.init(
            core: try ClientCore(
                release: release, baseURL: baseURL, vault: vault, trust: trust, options: options))
    }

    init(core: ClientCore, signer: PresenceSigner? = nil) {
        self.core = core
        self.signer = signer
    }
}

extension CountersignClient {
    /// Signs and sends requests in the name of the app's version and of the signed-in account.
    public var sender: APISender { APISender(engine: core, signer: signer) }

    /// Call this at launch: restores the last login and returns what to show.
    ///
    /// The authority confirms the session, and the client renews it if its token has expired. Only the
    /// authority's signed statement ends it: if the device is offline, the session stands, and the state is
    /// ``CountersignState/active(_:)`` all the same. If the device's key is bound to presence, the state is
    /// ``CountersignState/locked``, and ``unlock(_:)`` comes next (``CountersignOptions/gate``).
    @discardableResult
    public func resume() async -> CountersignState {
        do throws(CountersignError) {
            try await core.look()
            if core.stateMachine.isSignedIn { try await confirmAtTheGate() }
        } catch {
            // The state shows what the error means for the session. The events report other errors, and the
            // next call meets them again.
        }
        return state
    }

    /// Allows requests again after ``CountersignState/updateRequired(url:)``: for an app that goes on showing
    /// what it may still read. The next `update-required` pauses them again.
    public func continueDespiteUpdate() { core.stateMachine.continueDespiteUpdate() }

    /// The switch "stay signed in". With ``CountersignOptions/Remembering/nothing`` the session continues
    /// until the process ends, and its stored copy is removed; with
    /// ``CountersignOptions/Remembering/session`` it is stored from now on.
    public func remember(_ what: CountersignOptions.Remembering) async throws(CountersignError) {
        try await core.open()
        try await core.remember(what)
    }

    /// Sends the server one request and verifies the response's signature: for the first start of a new
    /// build, and for tests.
    ///
    /// Returns the seconds by which the device's clock is behind the server's. Throws
    /// ``CountersignError/refused(_:)`` if the server does not know the release key or its secret is wrong,
    /// ``CountersignError/notGenuine(_:)`` if its response is signed with another authority key than the
    /// release key's, and ``CountersignError/misuse(_:)`` if the release key has no authority key. Source:
    /// docs/protocol.md, "Time".
    @discardableResult
    public func checkSetup() async throws(CountersignError) -> Int64 {
        try await core.run(signer: nil) { (installation, environment) async throws(ClientOperationError) in
            try await TimeRequest(installation, environment: environment)()
        }
    }
}

extension CountersignClient {
    /// What to show now.
    public var state: CountersignState { core.context.report.state }

    /// What to show, from now on: the current state first, then each change. For any number of listeners; a
    /// slow listener gets the last state and misses those in between. Ends when the client does.
    public var states: AsyncStream<CountersignState> { core.context.report.states }
}

/// For tools, which show more than an app needs.
extension CountersignClient {
    /// Waits, at most so long, until the server was told of the sign-outs that are being sent: for a process
    /// that ends.
    package func finishLogOuts(within limit: Duration) async {
        await core.keeper.logOuts.settle(within: limit)
    }

    /// The stored state as it is now, whichever process wrote it.
    package func kept() async throws(CountersignError) -> PersistedState {
        try await core.look()
        return try await core.run(signer: nil) { (_, environment) async throws(ClientOperationError) in
            try environment.keeper.state()
        }
    }

    /// The session as the authority sees it.
    package func current() async throws(CountersignError) -> AccountSessions.Current {
        try await core.run(signer: nil) { (installation, environment) async throws(ClientOperationError) in
            try await AccountSessions(installation, environment: environment).current()
        }
    }

    /// Renews the session now, as requests do once its token has expired.
    package func renew() async throws(CountersignError) {
        try await core.run(signer: nil) { (installation, environment) async throws(ClientOperationError) in
            try await SignedCalls(installation, environment: environment).renew()
        }
    }

    /// The last response to a request, with its body as a stream. Returns refusals of the authority instead
    /// of throwing them; throws if the authority has ended the session.
    package func answer(to request: APIRequest) async throws(CountersignError) -> APIAnswer {
        try await core.send(
            request, options: CallOptions(reading: .streamed, signer: nil, refusals: .answered))
    }

    /// The signed request as it would be sent now. Renews nothing and sends nothing.
    package func draft(of request: APIRequest) async throws(CountersignError) -> Draft {
        let plain = try core.draft(of: request, body: try await PreparedBody(request.body))
        return try await core.run(signer: nil) {
            (installation, environment) async throws(ClientOperationError) in
            switch request.caller {
            case .account: try SignedCalls(installation, environment: environment).signed(plain)
            case .app: try ReleaseCalls(installation, environment: environment).signed(plain)
            }
        }
    }
}

extension ReleaseKey {
    /// From a key of any kind that signs.
    package init(
        _ credentials: Credentials, authorityKey: SigningKey?, nextAuthorityKey: SigningKey? = nil,
        app: String?
    ) {
        self.init(
            id: credentials.keyID.description, app: app, credentials: credentials, authorityKey: authorityKey,
            nextAuthorityKey: nextAuthorityKey)
    }
}
