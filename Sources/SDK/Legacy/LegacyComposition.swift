import CountersignClient
import CountersignSeal
import CountersignTransport
import CountersignTrust
import CountersignVault
import CountersignWire

/// Where a legacy client is put together.
struct LegacyComposition {
    let base: BaseURL
    let options: LegacyOptions
    let account: LegacyAccount
    let vault: LegacyVault
    let states: Broadcast<CountersignState>

    init(
        _ scheme: LegacyScheme, _ baseURL: String, _ login: LegacyLogin?, _ place: VaultPlace, _ trust: Trust,
        _ options: LegacyOptions
    ) throws(CountersignError) {
        let base = try BaseURL(baseURL, options.encryption)
        let carrier = try LegacyComposition.carrier(options.carriage, trust)
        let server = try LegacyComposition.server(scheme, base, login, trust, options)
        let transport = LegacyTransport(carrier: carrier, origin: base.origin, most: options.largestAnswer)
        let clock = options.clock
        var own = transport
        own.patience = OwnTransport.patience
        let exchange = LegacyExchange(server, transport, own: own, now: { clock.wall() }, random: SystemRandom())
        let store: LegacyStore
        do throws(VaultProblem) {
            let item = try ItemName(service: "countersign legacy \(base.origin.authority)", account: options.app)
            let remembering = RememberingVault(
                over: place.vault(owning: [item.service]),
                options.remembers == .nothing ? .endsWithTheProcess : .outlivesTheProcess)
            vault = LegacyVault(remembering, item)
            store = LegacyStore(remembering.vault, item)
        } catch {
            throw CountersignError(error)
        }
        let states = Broadcast<CountersignState>(.latest, latest: .unavailable)
        account = LegacyAccount(
            exchange, store,
            remembering: options.remembers == .sessionAndWhatSignsInLikeThePassword ? .whatSignsIn : .nothing
        ) { standing in
            states.tell(CountersignState(standing))
        }
        (self.base, self.options, self.states) = (base, options, states)
    }

    private static func server(
        _ scheme: LegacyScheme, _ base: BaseURL, _ login: LegacyLogin?, _ trust: Trust, _ options: LegacyOptions
    ) throws(CountersignError) -> LegacyServer {
        let isTLS = base.origin.security == .tls
        var server = LegacyServer(
            host: base.origin.authority, transport: isTLS ? .tls : .plain, signing: scheme.signing,
            userAgent: options.userAgent,
            channel: isTLS && trust.isPinned(base.origin.host) ? .pinned : .open)
        server.login = login?.door
        if let path = login?.door.path { _ = try base.target(path) }
        _ = try base.target(options.renewalPath)
        server.tokens.renewalPath = options.renewalPath
        server.tokens.place =
            place(options.tokenPlace, scheme) == .formParameters ? .formParameters : .authorizationField
        server.tokens.unauthorized = options.unauthorized == .tokenRanOut ? .tokenRanOut : .isAnAnswer
        server.bearerSecrets =
            switch options.bearerSecrets {
            case .onlyToThePinnedCertificate: .onlyToThePinnedCertificate
            case .toAnyCertificateThatVerifies: .toAnyCertificateThatVerifies
            case .inTheClearToWhoeverListens: .inTheClearToWhoeverListens
            }
        if let flaw = server.flaw { throw .misuse(flaw) }
        return server
    }

    private static func place(_ place: LegacyOptions.TokenPlace, _ scheme: LegacyScheme) -> LegacyOptions.TokenPlace {
        place == .asTheSchemeHasIt ? scheme.tokens : place
    }

    private static func carrier(
        _ carriage: CountersignOptions.Carriage, _ trust: Trust
    ) throws(CountersignError) -> any Carrier {
        switch carriage {
        case .custom(let carrier):
            carrier.replaceTrust(by: trust)
            return carrier
        case .standard(let options):
            do throws(TransportError) {
                return try PlatformTransport(trust: trust, options: options)
            } catch {
                throw CountersignError(error)
            }
        }
    }
}
