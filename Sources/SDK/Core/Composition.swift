import CountersignClient
import CountersignSeal
import CountersignTransport
import CountersignTrust
import CountersignVault
import CountersignWire

/// Composes a client: the only place that chooses its transport, vault, trust and clock.
struct Composition {
    let context: CallContext
    let release: ReleaseKey
    let options: CountersignOptions
    let trust: ActiveTrust
    let vault: SwitchableVault
    /// The vault item of the session.
    let item: ItemName
    let keeper: StateKeeper
    let stateMachine: ClientStateMachine
    let environment: ClientEnvironment

    init(
        release: ReleaseKey, baseURL: String, vault place: VaultPlace, trust: Trust,
        options: CountersignOptions
    ) throws(CountersignError) {
        let base = try BaseURL(baseURL, encryption: options.encryption)
        let report = StatePublisher()
        options.log.follow(report.events.stream())
        try Composition.checkCoverage(of: trust, for: base.origin)
        let pins = try ActiveTrust.keeper(
            builtIn: trust, updates: options.pinUpdates, for: base.origin)
        if let discarded = pins?.discarded { report.events.tell(.pinsDiscarded(discarded)) }
        let inForce = pins?.current.trust ?? trust
        guard
            release.authorityKey != nil || base.origin.security == .plaintext
                || inForce.isPinned(base.origin.host)
                || options.missingAuthorityKey == .leavesRefusalsUnverified
        else {
            throw .misuse(
                """
                release key: the authority key is missing, and the trust pins no certificate of \
                \(base.origin.host): expected the `authority_key` that `countersign release add` printed; \
                nothing that the server says could be verified
                """)
        }
        guard
            options.passwordLogin == .never
                || base.origin.security == .tls && inForce.isPinned(base.origin.host)
        else {
            throw .misuse(
                "passwordLogin: the trust pins no certificate of \(base.origin.host), "
                    + "and a password goes to no other"
            )
        }
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
        stateMachine = ClientStateMachine(report, gate: Composition.gate(options))
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

    /// A key that is stored with the session needs no presence.
    private static func gate(_ options: CountersignOptions) -> ClientStateMachine.Gate {
        switch (options.deviceKey, options.gate) {
        case (.boundToPresence, .atLaunch): .closed
        case (.boundToPresence, .none), (.kept, _): .open
        }
    }

    /// Refuses a trust whose rules name other hosts only: the app's own server would go by the rule for all
    /// others, and its certificate would not be pinned, without any sign of it.
    static func checkCoverage(of trust: Trust, for origin: Origin) throws(CountersignError) {
        guard origin.security == .tls, !trust.rules.isEmpty, trust.rules(for: origin.host).isEmpty else {
            return
        }
        let patterns = trust.rules.map { "`\($0.pattern)`" }.joined(separator: ", ")
        throw .misuse(
            "trust: no rule covers \(origin.host), the host of the base URL; the rules are for \(patterns): "
                + "expected a rule for it, `.system` among them where it is not pinned")
    }
}

extension DeviceKeyPolicy {
    fileprivate init(_ options: CountersignOptions) {
        switch options.deviceKeyStorage {
        case .hardwareWhereThereIsOne:
            self.init(.hardwareWhereThereIsOne, hardware: options.deviceKeyHardware)
        case .hardwareOnly: self.init(.hardwareOnly, hardware: options.deviceKeyHardware)
        // Keys that were made in hardware before still sign until the next login.
        case .softwareOnly: self.init(.softwareOnly, hardware: options.deviceKeyHardware)
        }
    }
}

/// A device's clocks, as the client module reads them.
struct DeviceTime: ClientTime {
    let clock: DeviceClock

    var now: Int64 { clock.wall() }

    var milliseconds: Int64 { Int64(clock.monotonic() / 1_000_000) }
}

extension DeviceClock {
    /// The time since `start`, a reading of the monotonic clock.
    func elapsed(since start: UInt64) -> Duration { .nanoseconds(Int64(monotonic() - start)) }
}
