import CountersignClient
import CountersignSeal
import CountersignTransport
import CountersignTrust
import CountersignVault
import CountersignWire

/// Where a client is put together: the only place that chooses what carries, keeps, judges and tells the time.
struct Composition {
    let release: ReleaseKey
    let base: BaseURL
    let options: CountersignOptions
    let carrier: any Carrier
    let trust: TrustInForce
    let vault: RememberingVault
    /// Where the session lies in it.
    let item: ItemName
    let keeper: StateKeeper
    let events: Broadcast<CountersignEvent>
    let standings: Standings
    let surroundings: Surroundings
    let cookies = CookieStore()

    /// Lines of a log that wait for whoever reads it slowly.
    static let mostEvents = 1_000

    init(
        _ release: ReleaseKey, _ baseURL: String, _ place: VaultPlace, _ trust: Trust, _ options: CountersignOptions
    ) throws(CountersignError) {
        let base = try BaseURL(baseURL, options.encryption)
        let events = Broadcast<CountersignEvent>(.recent(Composition.mostEvents))
        options.log.follow(events.stream())
        let pins = try TrustInForce.keeper(trust, options.pinUpdates)
        let inForce = pins?.current.trust ?? trust
        guard
            release.authorityKey != nil || base.origin.security == .plaintext || inForce.isPinned(base.origin.host)
                || options.missingAuthorityKey == .leavesRefusalsUnverified
        else {
            throw .misuse(
                """
                release key: the authority key is missing, and the trust pins no certificate of \(base.origin.host): expected the \
                `authority_key` that `countersign release add` printed; nothing that the server says could be verified
                """)
        }
        guard
            options.passwordLogin == .never || base.origin.security == .tls && inForce.isPinned(base.origin.host)
        else {
            throw .misuse(
                "passwordLogin: the trust pins no certificate of \(base.origin.host), and a password goes to no other")
        }
        let carrier = try Composition.carrier(options.carriage, inForce, events)
        do throws(ClientProblem) {
            item = try StateKeeper.item(host: base.origin.authority, app: release.app)
        } catch {
            throw CountersignError(error)
        }
        let lasting = place.vault(
            owning: [item.service, "\(item.service) key", DeviceKeyKeeper.service(besides: item.service)])
        vault = RememberingVault(
            over: lasting,
            options.remembers == .session ? .outlivesTheProcess : .endsWithTheProcess)
        keeper = StateKeeper(vault.vault, item, deviceKeys: DeviceKeyPolicy(options))
        standings = Standings(events, gate: Composition.gate(options))
        var surroundings = Surroundings(
            transport: OwnTransport(
                carrier: carrier, origin: base.origin, events: events, refresh: Array("\(options.routes)/token".utf8)),
            keeper: keeper, time: Time(clock: options.clock), random: SystemRandom())
        // Past what ends with the process: nothing that is kept there opens anything, and it has to outlive
        // every session.
        if options.remembers == .session || options.passwordLogin != .never {
            do throws(ClientProblem) {
                surroundings.opaqueAccounts = OpaqueAccounts(lasting, try OpaqueAccounts.item(beside: item))
            } catch {
                throw CountersignError(error)
            }
        }
        self.surroundings = surroundings
        (self.release, self.base, self.options, self.carrier) = (release, base, options, carrier)
        (self.trust, self.events) = (TrustInForce(trust, pins, carrier, for: base.origin), events)
        let owner = Locked<AccountName?>(nil)
        keeper.announce { [standings, cookies] standing in
            standings.take(standing)
            Composition.clear(cookies, of: owner, at: standing)
        }
    }

    /// One account's cookies are no other's.
    private static func clear(_ cookies: CookieStore, of owner: Locked<AccountName?>, at standing: Standing) {
        let next: AccountName?
        switch standing {
        case .active(let account, _, _): next = account
        case .signedOut: next = nil
        case .locked, .unavailable: return
        }
        let former = owner.with { owner in
            defer { owner = next }
            return owner
        }
        if let former, former != next { cookies.removeAll() }
    }

    /// Of a key that is kept with the session nobody needs to be there.
    private static func gate(_ options: CountersignOptions) -> Standings.Gate {
        switch (options.deviceKey, options.gate) {
        case (.boundToPresence, .atLaunch): .closed
        case (.boundToPresence, .none), (.kept, _): .open
        }
    }

    static func carrier(
        _ carriage: CountersignOptions.Carriage, _ trust: Trust, _ events: Broadcast<CountersignEvent>
    ) throws(CountersignError) -> any Carrier {
        switch carriage {
        case .custom(let carrier):
            carrier.replaceTrust(by: trust)
            return carrier
        case .standard(var options):
            let observe = options.observe
            options.observe = { verdict in
                events.tell(.judged(verdict))
                observe(verdict)
            }
            do throws(TransportError) {
                return try PlatformTransport(trust: trust, options: options)
            } catch {
                throw CountersignError(error)
            }
        }
    }
}

extension DeviceKeyPolicy {
    fileprivate init(_ options: CountersignOptions) {
        switch options.deviceKeyStorage {
        case .hardwareWhereThereIsOne: self.init(.hardwareWhereThereIsOne, hardware: options.deviceKeyHardware)
        case .hardwareOnly: self.init(.hardwareOnly, hardware: options.deviceKeyHardware)
        // Keys that were made in hardware before still sign until the next login.
        case .softwareOnly: self.init(.softwareOnly, hardware: options.deviceKeyHardware)
        }
    }
}
