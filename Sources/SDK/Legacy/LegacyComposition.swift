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
    let context: CallContext
    let account: LegacyAccount
    let vault: LegacyVault
    let presence: PresenceSecrets?

    init(
        scheme: LegacyScheme, baseURL: String, login: LegacyLogin?, vault place: VaultPlace, trust: Trust,
        options: LegacyOptions
    ) throws(CountersignError) {
        let base = try BaseURL(baseURL, encryption: options.encryption)
        let report = StatePublisher()
        context = try CallContext(base, options: options, trust: trust, report: report)
        let server = try LegacyComposition.server(
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
                over: place.vault(owning: [item.service, bound]),
                persistence: options.remembers == .nothing ? .endsWithTheProcess : .outlivesTheProcess)
            vault = LegacyVault(remembering, item: item)
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

extension CookieJar {
    /// A login has begun a session: its response may set the first cookies. `target` is where logins are
    /// sent, which decides the default path of these cookies.
    fileprivate func begin(_ signIn: LegacySignIn, target: [UInt8]) {
        store.belong(to: signIn.session.owner)
        let message = signIn.response.message
        let fields = message.fields.map { field in
            HeaderField(message.text(field.name), bytes: Array(message.head[field.value.range]))
        }
        take(fields, target: target, unlessRemovedSince: store.removals)
    }

    /// The session has changed.
    fileprivate func follow(_ status: LegacySessionStatus) {
        switch status {
        case .active(let account, let userID):
            store.belong(to: .legacyAccount(name: account, userID: userID))
        case .signedOut: store.belong(to: nil)
        case .locked, .presenceNeeded, .unavailable, .updateRequired: break
        }
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
