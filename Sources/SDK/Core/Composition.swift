import CountersignClient
import CountersignSeal
import CountersignTransport
import CountersignTrust
import CountersignVault

/// Where a client is put together: the only place that chooses what carries, keeps, judges and tells the time.
struct Composition {
    let release: ReleaseKey
    let base: BaseURL
    let options: ClientOptions
    let carrier: any Carrier
    let trust: TrustInForce
    let vault: RememberingVault
    /// Where the session lies in it.
    let item: ItemName
    let keeper: StateKeeper
    let events: Broadcast<ClientEvent>
    let standings: Standings
    let surroundings: Surroundings

    /// Lines of a log that wait for whoever reads it slowly.
    private static let mostEvents = 1_000

    init(
        _ release: ReleaseKey, _ baseURL: String, _ place: VaultPlace, _ trust: Trust, _ options: ClientOptions
    ) throws(ClientError) {
        let base = try BaseURL(baseURL, options.encryption)
        let events = Broadcast<ClientEvent>(.recent(Composition.mostEvents))
        let pins = try TrustInForce.keeper(trust, options.pinUpdates)
        let carrier = try Composition.carrier(options.carriage, pins?.current.trust ?? trust, events)
        do throws(ClientProblem) {
            item = try StateKeeper.item(host: base.origin.authority, app: release.app)
        } catch {
            throw ClientError(error)
        }
        vault = RememberingVault(
            over: place.vault(
                owning: [
                    item.service, "\(item.service) key", DeviceKeyKeeper.service(besides: item.service),
                ]),
            options.remembers == .session ? .outlivesTheProcess : .endsWithTheProcess)
        keeper = StateKeeper(vault.vault, item, deviceKeys: DeviceKeyPolicy(options))
        standings = Standings(events, gate: Composition.gate(options))
        surroundings = Surroundings(
            transport: OwnTransport(
                carrier: carrier, origin: base.origin, events: events, refresh: Array("\(options.routes)/token".utf8)),
            keeper: keeper, time: Time(clock: options.clock), random: SystemRandom())
        (self.release, self.base, self.options, self.carrier) = (release, base, options, carrier)
        (self.trust, self.events) = (TrustInForce(trust, pins, carrier, for: base.origin), events)
        keeper.announce { [standings] in standings.take($0) }
    }

    /// Of a key that is kept with the session nobody needs to be there.
    private static func gate(_ options: ClientOptions) -> Standings.Gate {
        switch (options.deviceKey, options.gate) {
        case (.boundToPresence, .atLaunch): .closed
        case (.boundToPresence, .none), (.kept, _): .open
        }
    }

    private static func carrier(
        _ carriage: ClientOptions.Carriage, _ trust: Trust, _ events: Broadcast<ClientEvent>
    ) throws(ClientError) -> any Carrier {
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
                throw ClientError(error)
            }
        }
    }
}

extension DeviceKeyPolicy {
    fileprivate init(_ options: ClientOptions) {
        switch options.deviceKeyStorage {
        case .hardwareWhereThereIsOne: self.init(.hardwareWhereThereIsOne, hardware: options.deviceKeyHardware)
        case .hardwareOnly: self.init(.hardwareOnly, hardware: options.deviceKeyHardware)
        // Keys that were made in hardware before still sign until the next login.
        case .softwareOnly: self.init(.softwareOnly, hardware: options.deviceKeyHardware)
        }
    }
}
