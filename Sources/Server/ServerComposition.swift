import CountersignAuthority
import CountersignGate
import CountersignHTTP
import CountersignWire

/// Chooses those parts of a server that a planted fault or a test may replace. The product has one
/// implementation, ``SoundComposition``; `Tools/Faults` has the faulty one. It is asked while the server
/// starts, never for a request. Source: docs/decisions/0031-broken-servers.md.
package protocol ServerComposition: Sendable {
    /// Seals the roots of sessions for the store.
    var rootSealer: any SessionRootSealer { get }
    /// How the engine serves requests that need not wait.
    var servingPath: ServingPath { get }

    /// The settings to serve with.
    func configured(_ configuration: Configuration) -> Configuration

    /// Called before the replay table is opened.
    func prepare(_ deployment: Deployment) throws(OperationalError)
    func loginSettings(_ settings: LoginSettings) -> LoginSettings
    func writer(_ writer: GroupWriter) -> any StoreWriter
    func channel(_ channel: any NodeChannel) -> any NodeChannel
    /// `accounts` is the connection that the login reads.
    func login(_ login: Login, accounts: any AccountStore) -> any PasswordLogin
    func legacyLogin(_ login: LegacyLoginService, accounts: any AccountStore) -> any LegacyPasswordLogin
    /// Where keyed requests are stored.
    func keyedRequests(_ store: any IdempotencyStore) -> any IdempotencyStore
    /// Changes the fields that tell the backend about a caller; nil to leave them as they are.
    var identityRewriter: FieldLineRewriter? { get }
    /// One for each loop. `authorities` are the hosts that the deployment answers for.
    func gate(
        for authorities: [String], keys: ReleaseKeyDirectory, sessions: LoopSessions,
        replay: any ReplayGuard, failures: PublicKeyFailureLimiter, clock: TrustedClock
    ) -> Gate
    /// What the listener calls. One for each loop.
    func handler(_ gateway: any Handler, replay: any ReplayGuard) -> any Handler
}

/// Replaces field lines, each with its CRLF, that the gateway adds to a request.
package typealias FieldLineRewriter = @Sendable (_ lines: [UInt8], _ request: Request) -> [UInt8]

extension ServerComposition {
    package var rootSealer: any SessionRootSealer { MasterKeyRootSealer() }
    package var servingPath: ServingPath { .immediate }

    package func configured(_ configuration: Configuration) -> Configuration { configuration }
    package func prepare(_ deployment: Deployment) throws(OperationalError) {}
    package func loginSettings(_ settings: LoginSettings) -> LoginSettings { settings }
    package func writer(_ writer: GroupWriter) -> any StoreWriter { writer }
    package func channel(_ channel: any NodeChannel) -> any NodeChannel { channel }
    package func login(_ login: Login, accounts: any AccountStore) -> any PasswordLogin { login }

    package func legacyLogin(_ login: LegacyLoginService, accounts: any AccountStore)
        -> any LegacyPasswordLogin
    {
        login
    }

    package func keyedRequests(_ store: any IdempotencyStore) -> any IdempotencyStore { store }

    package var identityRewriter: FieldLineRewriter? { nil }

    package func gate(
        for authorities: [String], keys: ReleaseKeyDirectory, sessions: LoopSessions,
        replay: any ReplayGuard, failures: PublicKeyFailureLimiter, clock: TrustedClock
    ) -> Gate {
        Gate(
            allowedHosts: AllowedHosts(authorities), keys: keys, sessions: sessions.source,
            replay: replay, failures: failures, lookups: sessions.lookups, clock: clock)
    }

    package func handler(_ gateway: any Handler, replay: any ReplayGuard) -> any Handler { gateway }
}

/// Every part as it is meant to be.
package struct SoundComposition: ServerComposition {
    package init() {}
}
