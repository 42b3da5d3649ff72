import CountersignClient
import CountersignMemory
import CountersignSchemes
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
    let carrier: any RequestTransport
    let report: LegacyStatePublisher
    let presence: LegacyPresence?
    let cookies: LegacyCookies

    init(
        scheme: LegacyScheme, baseURL: String, login: LegacyLogin?, vault place: VaultPlace, trust: Trust,
        options: LegacyOptions
    ) throws(CountersignError) {
        let base = try BaseURL(baseURL, encryption: options.encryption)
        let events = Broadcast<CountersignEvent>(.recent(Composition.mostEvents))
        let carrier = try Composition.carrier(options.transport, trust: trust, events: events)
        let server = try LegacyComposition.server(
            scheme: scheme, base: base, login: login, trust: trust, options: options)
        let transport = LegacyTransport(
            carrier: carrier, origin: base.origin, most: options.largestAnswer, events: events,
            renewals: Array(options.renewalPath.utf8))
        let clock = options.clock
        var own = transport
        own.patience = AuthorityTransport.timeout
        let exchange = LegacyExchange(
            server, transport: transport, own: own, now: { clock.wall() }, random: SystemRandom())
        let store: LegacyStore
        do throws(VaultError) {
            let item = try ItemName(
                service: "countersign legacy \(base.origin.authority)", account: options.app)
            let bound = "\(item.service) key"
            let remembering = SwitchableVault(
                over: place.vault(owning: [item.service, bound]),
                persistence: options.remembers == .nothing ? .endsWithTheProcess : .outlivesTheProcess)
            vault = LegacyVault(remembering, item: item)
            store = LegacyStore(remembering.vault, item: item)
            // A session that ends with the process needs no gate at the next launch.
            if case .atLaunch(let person) = options.gate, options.remembers != .nothing {
                presence = LegacyPresence(presence: person, vault: remembering.vault, service: bound)
            } else {
                presence = nil
            }
        } catch {
            throw CountersignError(error)
        }
        options.log.follow(events.stream())
        let report = LegacyStatePublisher(events)
        let cookies = LegacyCookies(
            CookieJar(store: CookieStore(), rule: options.cookies, base: base, clock: options.clock),
            loginTarget: Array((login?.route.path ?? login?.route.rung.endpoint.path ?? "/").utf8))
        self.cookies = cookies
        account = LegacyAccount(
            exchange, store: store,
            remembering: options.remembers == .sessionAndWhatSignsInLikeThePassword ? .whatSignsIn : .nothing,
            sessionStorage: presence == nil ? .plain : .sealedByPresence,
            reportSignIn: { cookies.begin($0) }
        ) { status in
            cookies.take(status)
            report.take(status)
        }
        (self.base, self.options, self.carrier, self.report) = (base, options, carrier, report)
    }

    private static func server(
        scheme: LegacyScheme, base: BaseURL, login: LegacyLogin?, trust: Trust,
        options: LegacyOptions
    ) throws(CountersignError) -> LegacyServer {
        let isTLS = base.origin.security == .tls
        try Composition.checkCoverage(of: trust, for: base.origin)
        var server = LegacyServer(
            host: base.origin.authority, transport: isTLS ? .tls : .plain, signing: scheme.signing,
            userAgent: options.userAgent,
            channel: isTLS && trust.isPinned(base.origin.host) ? .pinned : .open)
        server.login = login?.route
        if let path = login?.route.path { _ = try base.target(path) }
        _ = try base.target(options.renewalPath)
        if let path = options.logoutPath { _ = try base.target(path) }
        server.tokens.renewalPath = options.renewalPath
        server.tokens.logoutPath = options.logoutPath
        server.tokens.place =
            place(options.tokenPlace, scheme: scheme) == .formParameters
            ? .formParameters : .authorizationField
        server.tokens.unauthorized = options.unauthorized == .tokenRanOut ? .tokenExpired : .isAnAnswer
        server.bearerSecrets =
            switch options.bearerSecrets {
            case .onlyToThePinnedCertificate: .onlyToThePinnedCertificate
            case .toAnyCertificateThatVerifies: .toAnyCertificateThatVerifies
            case .inTheClearToWhoeverListens: .inTheClearToWhoeverListens
            }
        if let flaw = server.flaw { throw .misuse(flaw) }
        return server
    }

    private static func place(_ place: LegacyOptions.TokenPlace, scheme: LegacyScheme)
        -> LegacyOptions.TokenPlace
    {
        place == .asTheSchemeHasIt ? scheme.tokens : place
    }
}

/// A legacy client's place in the vault, for operations that block a thread for long: a vault opens when
/// the user has typed a passphrase, and the threads that run tasks are few.
final class LegacyVault: Sendable {
    private let vault: SwitchableVault
    private let item: ItemName
    private let line = BlockingWorkQueue("countersign.legacy")
    private let isOpen = Locked(false)

    init(_ vault: SwitchableVault, item: ItemName) {
        (self.vault, self.item) = (vault, item)
    }

    /// Opens the vault if that was not done, and removes what an earlier process has stored if nothing
    /// outlives this one. The next call repeats what failed.
    func open() async throws(VaultError) {
        guard !isOpen.with({ $0 }) else { return }
        try await forgetKept()
        let (vault, item) = (vault, item)
        _ = try await line.run { .success(vault.vault.read(item)) }.get()
        isOpen.with { $0 = true }
    }

    /// Removes what other processes have stored if nothing outlives this one.
    func forgetKept() async throws(VaultError) {
        let (vault, item) = (vault, item)
        try await line.run {
            Result { () throws(VaultError) in try vault.removePersisted([item]) }
        }
    }
}
