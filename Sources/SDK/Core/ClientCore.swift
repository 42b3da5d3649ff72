import CountersignClient
import CountersignSchemes
import CountersignSeal
import CountersignTransport
import CountersignTrust
import CountersignVault
import CountersignWire

/// The state that a client and all values derived from it share. Only its initializer chooses the client's
/// transport, vault, trust and clock.
final class ClientCore: Sendable {
    let context: CallContext
    let release: ReleaseKey
    let options: CountersignOptions
    let trust: ActiveTrust
    let keeper: StateKeeper
    let vault: SwitchableVault
    /// The vault item of the session.
    let item: ItemName
    let stateMachine: ClientStateMachine
    /// The environment for the client's own requests: logins, refreshes, sessions.
    let environment: ClientEnvironment
    private let line = BlockingWorkQueue("countersign.client")
    private let isOpen = Locked(false)
    private let offset = Locked<Int64>(0)

    init(
        release: ReleaseKey, baseURL: String, vault place: VaultPlace, trust: Trust,
        options: CountersignOptions
    ) throws(CountersignError) {
        let base = try BaseURL(baseURL, encryption: options.encryption)
        let report = StatePublisher()
        options.log.follow(report.events.stream())
        try CompositionCheck.checkCoverage(of: trust, for: base.origin)
        let pins = try ActiveTrust.keeper(
            builtIn: trust, updates: options.pinUpdates, for: base.origin)
        if let discarded = pins?.discarded { report.events.tell(.pinsDiscarded(discarded)) }
        let inForce = pins?.current.trust ?? trust
        try CompositionCheck.checkProof(of: base.origin, by: inForce, release: release, options: options)
        context = try CallContext(base, options: options, trust: inForce, report: report)
        do throws(ClientOperationError) {
            item = try StateKeeper.item(host: base.origin.authority, app: release.app)
        } catch {
            throw CountersignError(error)
        }
        let lasting = place.vault(
            owning: [item.service, "\(item.service) key", DeviceKeyKeeper.service(besides: item.service)])
        vault = SwitchableVault(
            over: lasting,
            persistence: options.remembers == .session ? .outlivesTheProcess : .endsWithTheProcess)
        keeper = StateKeeper(vault.vault, item: item, deviceKeys: DeviceKeyPolicy(options))
        stateMachine = ClientStateMachine(report, gate: CompositionCheck.gate(options))
        var environment = ClientEnvironment(
            transport: AuthorityTransport(
                context, refresh: "\(options.routes)/token", largestResponse: 1 << 20),
            keeper: keeper, time: DeviceTime(clock: options.clock), random: NonceRandom())
        // Kept even if the session ends with the process: its entries open nothing, and they must outlive
        // every session.
        if options.remembers == .session || options.passwordLogin != .never {
            do throws(ClientOperationError) {
                environment.opaqueAccounts = OpaqueAccounts(
                    lasting, item: try OpaqueAccounts.item(beside: item))
            } catch {
                throw CountersignError(error)
            }
        }
        self.environment = environment
        (self.release, self.options) = (release, options)
        self.trust = ActiveTrust(builtIn: trust, keeper: pins, carrier: context.carrier, for: base.origin)
        keeper.announce { [stateMachine, cookies = context.jar.store] status in
            stateMachine.update(to: status)
            // Cookies of one account must not go with another's requests.
            switch status {
            case .active(let account, _, _): cookies.belong(to: .account(account))
            case .signedOut: cookies.belong(to: nil)
            case .locked, .unavailable: break
            }
        }
    }

    deinit { context.report.finish() }

    var base: BaseURL { context.base }

    var events: Broadcast<CountersignEvent> { context.report.events }

    /// The installation under the trust that is in force.
    var installation: Installation {
        var installation = Installation(
            host: base.origin.authority, transport: base.origin.security == .tls ? .tls : .plain,
            release: release.credentials, userAgent: options.userAgent,
            channel: trust.isPinned ? .pinned : .open)
        installation.prefix = options.routes
        installation.app = release.app
        installation.authorityKey = release.authorityKey
        installation.nextAuthorityKey = release.nextAuthorityKey
        installation.bearerSecrets =
            options.bearerSecrets == .toAnyCertificateThatVerifies
            ? .toAnyCertificateThatVerifies : .onlyToThePinnedCertificate
        return installation
    }

    /// The accounts whose password a login must not send; nil if no login sends one.
    var passwordFallback: OpaqueAccounts? {
        options.passwordLogin == .never ? nil : environment.opaqueAccounts
    }

    /// Reads the vault if that was not done: it may wait for a disk, a keychain or a user, so it runs on a
    /// thread of its own.
    func open() async throws(CountersignError) {
        guard !isOpen.with({ $0 }) else { return }
        try await look()
    }

    /// The same, and tells the server of nothing: for a sign-out, which does that itself.
    func openQuietly() async throws(CountersignError) {
        guard !isOpen.with({ $0 }) else { return }
        try await readVault()
    }

    /// Reads the vault's current state: another process may have written. Then tells the server of sign-outs
    /// of which it was not told.
    func look() async throws(CountersignError) {
        try await readVault()
        PendingLogOuts(installation: installation, environment: environment).sendInBackground()
    }

    /// If nothing outlives the process, removes what an earlier process stored.
    private func readVault() async throws(CountersignError) {
        let (keeper, vault, item, opaqueAccounts) = (keeper, vault, item, environment.opaqueAccounts)
        try await blocking { () throws(CountersignError) in
            do throws(VaultError) {
                try vault.removePersisted([keeper.deviceKeys.item, item])
            } catch {
                throw CountersignError(error)
            }
            do throws(ClientOperationError) {
                let state = try keeper.readVault()
                // A version that noted no accounts may have begun the session. Noted before anything is sent:
                // a server can end the session, and then nothing shows how it began.
                if let login = state.login, case .device = login.session {
                    try? opaqueAccounts?.insert(login.account)
                }
            } catch {
                throw CountersignError(error)
            }
        }
        isOpen.with { $0 = true }
    }

    /// Moves the stored state to the place that the option names.
    func remember(_ what: CountersignOptions.Remembering) async throws(CountersignError) {
        // The device's keys before the state that refers to them.
        let (keeper, vault, item) = (keeper, vault, item)
        try await blocking { () throws(CountersignError) in
            do throws(VaultError) {
                try vault.move(
                    [keeper.deviceKeys.item, item],
                    to: what == .session ? .outlivesTheProcess : .endsWithTheProcess)
            } catch {
                throw CountersignError(error)
            }
        }
    }

    private func blocking(_ work: @escaping @Sendable () throws(CountersignError) -> Void)
        async throws(CountersignError)
    {
        let result: Result<Void, CountersignError>
        do throws(VaultError) {
            result = try await line.run {
                do throws(CountersignError) {
                    return .success(.success(try work()))
                } catch {
                    return .success(.failure(error))
                }
            }
        } catch {
            throw CountersignError(error)
        }
        try result.get()
    }

    /// Reports that a signed response has moved the clock. Differences of up to two seconds are rounding.
    func noteClock() {
        guard let now = try? environment.now() else { return }
        let moved = now - environment.time.now
        let isNew = offset.with { known in
            guard abs(moved - known) > 2 else { return false }
            known = moved
            return true
        }
        if isNew { events.tell(.clockCorrected(offset: moved)) }
    }
}

extension ClientCore {
    /// Runs an operation of the client module and translates its errors for the app.
    func run<Result: Sendable>(
        signer: PresenceSigner?,
        operation body:
            @Sendable (Installation, ClientEnvironment) async throws(ClientOperationError) -> Result
    ) async throws(CountersignError) -> Result {
        try await open()
        do throws(ClientOperationError) {
            var callEnvironment = environment
            callEnvironment.signer = signer?.present
            let result = try await body(installation, callEnvironment)
            noteClock()
            return result
        } catch {
            throw note(Task.isCancelled ? .cancelled : CountersignError(error))
        }
    }

    /// The request with its signature. Renews a token that is known to have expired first, because the
    /// caller's HTTP stack cannot.
    func signed(_ request: APIRequest, signer: PresenceSigner?) async throws(CountersignError)
        -> SignedRequest
    {
        let owner = CallOwner()
        try await open()
        try await resolve(owner, for: request.caller)
        try await admit(request.caller, owner: owner)
        try await resolve(owner, for: request.caller)
        let body = try await PreparedBody(request.body)
        let plain = try draft(of: request, body: body)
        if request.caller == .account, try hasRunOut() {
            _ = try await run(signer: signer) {
                (installation, environment) async throws(ClientOperationError) in
                try await AccountSessions(installation, environment: environment).current()
            }
        }
        let draft = try await run(signer: signer) {
            (installation, environment) async throws(ClientOperationError) in
            switch request.caller {
            case .account:
                try SignedCalls(installation, environment: environment).signed(plain, as: owner.signing)
            case .app: try ReleaseCalls(installation, environment: environment).signed(plain)
            }
        }
        return context.signed(draft, of: request, body: body)
    }

    /// Whether the token is known to be refused: it has expired, or is for the app's version before an
    /// update.
    private func hasRunOut() throws(CountersignError) -> Bool {
        guard let login = try storedState().login else { return false }
        do throws(ClientOperationError) {
            return try login.expires <= environment.now()
                || login.isOfAnother(than: installation.release.keyID)
        } catch {
            throw CountersignError(error)
        }
    }

    /// As last known here.
    func storedState() throws(CountersignError) -> PersistedState {
        do throws(ClientOperationError) {
            return try keeper.state()
        } catch {
            throw CountersignError(error)
        }
    }
}
