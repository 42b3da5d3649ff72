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
    let carrier: any Carrier
    let report: LegacyReport
    let presence: LegacyPresence?

    init(
        _ scheme: LegacyScheme, _ baseURL: String, _ login: LegacyLogin?, _ place: VaultPlace, _ trust: Trust,
        _ options: LegacyOptions
    ) throws(CountersignError) {
        let base = try BaseURL(baseURL, options.encryption)
        let events = Broadcast<CountersignEvent>(.recent(Composition.mostEvents))
        let carrier = try Composition.carrier(options.carriage, trust, events)
        let server = try LegacyComposition.server(scheme, base, login, trust, options)
        let transport = LegacyTransport(
            carrier: carrier, origin: base.origin, most: options.largestAnswer, events: events,
            renewals: Array(options.renewalPath.utf8))
        let clock = options.clock
        var own = transport
        own.patience = OwnTransport.patience
        let exchange = LegacyExchange(server, transport, own: own, now: { clock.wall() }, random: SystemRandom())
        let store: LegacyStore
        do throws(VaultProblem) {
            let item = try ItemName(service: "countersign legacy \(base.origin.authority)", account: options.app)
            let bound = "\(item.service) key"
            let remembering = RememberingVault(
                over: place.vault(owning: [item.service, bound]),
                options.remembers == .nothing ? .endsWithTheProcess : .outlivesTheProcess)
            vault = LegacyVault(remembering, item)
            store = LegacyStore(remembering.vault, item)
            // What ends with the process needs no gate at the next one's start.
            if case .atLaunch(let person) = options.gate, options.remembers != .nothing {
                presence = LegacyPresence(presence: person, vault: remembering.vault, service: bound)
            } else {
                presence = nil
            }
        } catch {
            throw CountersignError(error)
        }
        let report = LegacyReport(events)
        account = LegacyAccount(
            exchange, store,
            remembering: options.remembers == .sessionAndWhatSignsInLikeThePassword ? .whatSignsIn : .nothing,
            keeping: presence == nil ? .plain : .sealedByPresence
        ) { report.take($0) }
        (self.base, self.options, self.carrier, self.report) = (base, options, carrier, report)
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
}
