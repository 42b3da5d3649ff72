import CountersignAuthority
import CountersignGate
import CountersignHTTP
import CountersignWire

/// Chooses those parts of a server that a planted fault may replace. A release build has one implementation,
/// ``SoundComposition``; the faulty one of debug builds lies in `Sabotage`. It is asked while the server
/// starts, never for a request. Source: docs/decisions/0031-broken-servers.md.
protocol ServerComposition: Sendable {
    /// Seals the roots of sessions for the store.
    var rootSealer: any SessionRootSealer { get }

    /// Called before the replay table is opened.
    func prepare(_ deployment: Deployment) throws(OperationalError)
    func loginSettings(_ settings: LoginSettings) -> LoginSettings
    func writer(_ writer: GroupWriter) -> any StoreWriter
    func channel(_ channel: any NodeChannel) -> any NodeChannel
    /// `accounts` is the connection that the login reads.
    func login(_ login: Login, accounts: any AccountStore) -> any PasswordLogin
    func legacyLogin(_ login: LegacyLoginService, accounts: any AccountStore) -> any LegacyPasswordLogin
    func idempotency(
        of deployment: Deployment, store: any IdempotencyStore, writer: any StoreWriter,
        settings: IdempotencySettings, handOver: HandoverState
    ) -> IdempotencyCoordinator
    /// One for each loop.
    func identityFields(
        _ asserter: AssertionIssuer, proxies: TrustedProxies, callerFields: ForbiddenCallerFields
    ) -> CallerIdentityFields
    /// One for each loop. `authorities` are the hosts that the deployment answers for.
    func gate(
        for authorities: [String], keys: ReleaseKeyDirectory, sessions: LoopSessions,
        replay: any ReplayGuard, failures: PublicKeyFailureLimiter
    ) -> Gate
    /// What the listener calls. One for each loop.
    func handler(_ gateway: Gateway, replay: any ReplayGuard) -> any Handler
}

extension ServerComposition {
    var rootSealer: any SessionRootSealer { MasterKeyRootSealer() }

    func prepare(_ deployment: Deployment) throws(OperationalError) {}
    func loginSettings(_ settings: LoginSettings) -> LoginSettings { settings }
    func writer(_ writer: GroupWriter) -> any StoreWriter { writer }
    func channel(_ channel: any NodeChannel) -> any NodeChannel { channel }
    func login(_ login: Login, accounts: any AccountStore) -> any PasswordLogin { login }

    func legacyLogin(_ login: LegacyLoginService, accounts: any AccountStore) -> any LegacyPasswordLogin {
        login
    }

    func idempotency(
        of deployment: Deployment, store: any IdempotencyStore, writer: any StoreWriter,
        settings: IdempotencySettings, handOver: HandoverState
    ) -> IdempotencyCoordinator {
        IdempotencyCoordinator(
            deployment, store: store, writer: writer, settings: settings, handOver: handOver)
    }

    func identityFields(
        _ asserter: AssertionIssuer, proxies: TrustedProxies, callerFields: ForbiddenCallerFields
    ) -> CallerIdentityFields {
        CallerIdentityFields(asserter, proxies: proxies, callerFields: callerFields)
    }

    func gate(
        for authorities: [String], keys: ReleaseKeyDirectory, sessions: LoopSessions,
        replay: any ReplayGuard, failures: PublicKeyFailureLimiter
    ) -> Gate {
        Gate(
            allowedHosts: AllowedHosts(authorities), keys: keys, sessions: sessions.source,
            replay: replay, failures: failures, lookups: sessions.lookups, clock: SystemTime())
    }

    func handler(_ gateway: Gateway, replay: any ReplayGuard) -> any Handler { gateway }
}

/// Every part as it is meant to be.
struct SoundComposition: ServerComposition {}
