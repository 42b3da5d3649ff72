import CountersignClient
import CountersignMemory
import CountersignSchemes
import CountersignSeal
import CountersignTransport
import CountersignTrust
import CountersignVault
import CountersignWire

extension LegacyServer {
    /// The server as the app describes it.
    init(
        scheme: LegacyScheme, base: BaseURL, login: LegacyLogin?, trust: Trust, options: LegacyOptions
    ) throws(CountersignError) {
        let isTLS = base.origin.security == .tls
        try CompositionCheck.checkCoverage(of: trust, for: base.origin)
        self.init(
            host: base.origin.authority, transport: isTLS ? .tls : .plain, signing: scheme.signing,
            userAgent: options.userAgent,
            channel: isTLS && trust.isPinned(base.origin.host) ? .pinned : .open)
        self.login = login?.route
        if let path = login?.route.path { _ = try base.target(path) }
        _ = try base.target(options.renewalPath)
        if let path = options.logoutPath { _ = try base.target(path) }
        tokens.renewalPath = options.renewalPath
        tokens.logoutPath = options.logoutPath
        let place = options.tokenPlace == .asTheSchemeHasIt ? scheme.tokens : options.tokenPlace
        tokens.place = place == .formParameters ? .formParameters : .authorizationField
        tokens.unauthorized = options.unauthorized == .tokenRanOut ? .tokenExpired : .isAnAnswer
        bearerSecrets =
            switch options.bearerSecrets {
            case .onlyToThePinnedCertificate: .onlyToThePinnedCertificate
            case .toAnyCertificateThatVerifies: .toAnyCertificateThatVerifies
            case .inTheClearToWhoeverListens: .inTheClearToWhoeverListens
            }
        if let flaw { throw .misuse(flaw) }
    }
}

extension CookieJar {
    /// A login has begun a session: its response may set the first cookies. `target` is where logins are
    /// sent, which decides the default path of these cookies.
    func begin(_ signIn: LegacySignIn, target: [UInt8]) {
        store.belong(to: signIn.session.owner)
        let message = signIn.response.message
        let fields = message.fields.map { field in
            HeaderField(message.text(field.name), bytes: Array(message.head[field.value.range]))
        }
        take(fields, target: target, unlessRemovedSince: store.removals)
    }

    /// The session has changed.
    func follow(_ status: LegacySessionStatus) {
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
