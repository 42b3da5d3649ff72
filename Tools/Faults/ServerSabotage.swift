import CountersignAuthority
import CountersignGate
import CountersignHTTP
import CountersignSchemes
import CountersignServer
import CountersignWire
import Glibc

/// Puts a broken part in the place of a sound one for each of its faults.
package struct FaultyComposition: ServerComposition {
    private let faults: Set<Sabotage>
    package let servingPath: ServingPath

    package init(_ faults: some Sequence<Sabotage>, servingPath: ServingPath = .immediate) {
        self.faults = Set(faults)
        self.servingPath = servingPath
    }

    package var rootSealer: any SessionRootSealer {
        has(.keptInClear) ? UnsealedRoots() : MasterKeyRootSealer()
    }

    /// With the store's schema of the later build that the faults name.
    package func configured(_ configuration: Configuration) -> Configuration {
        var configuration = configuration
        if has(.schemaExpanded) { configuration.store.layout = LaterLayouts.expanded }
        if has(.schemaContracted) { configuration.store.layout = LaterLayouts.contracted }
        return configuration
    }

    private func has(_ fault: Sabotage) -> Bool { faults.contains(fault) }

    /// The replay table of the time before the start is gone, and no component misses it.
    package func prepare(_ deployment: Deployment) throws(OperationalError) {
        guard has(.replayInMemoryOnly) else { return }
        unlink(deployment.folder.replay)
        try deployment.store.set(.replayFile, to: [])
    }

    /// Limits beyond any number of guesses, with immediate refill.
    package func loginSettings(_ settings: LoginSettings) -> LoginSettings {
        guard has(.guessesUnlimited) else { return settings }
        var settings = settings
        let endless = RateLimit(burst: .max, refillInterval: .zero)
        settings.account = endless
        settings.address = endless
        settings.device = endless
        settings.work = endless
        return settings
    }

    package func writer(_ writer: GroupWriter) -> any StoreWriter {
        has(.acknowledgedBeforeCommit) ? HastyStoreWriter(writer: writer) : writer
    }

    package func channel(_ channel: any NodeChannel) -> any NodeChannel {
        has(.notifyLost) ? DeafNodeChannel(channel) : channel
    }

    package func login(_ login: Login, accounts: any AccountStore) -> any PasswordLogin {
        guard let screen = screen(accounts) else { return login }
        return RevealingLogin(inner: login, screen: screen)
    }

    package func legacyLogin(
        _ login: LegacyLoginService, accounts: any AccountStore
    ) -> any LegacyPasswordLogin {
        guard let screen = screen(accounts) else { return login }
        return RevealingLegacyLogin(inner: login, screen: screen)
    }

    private func screen(_ accounts: any AccountStore) -> UnknownAccountScreen? {
        if has(.unknownAccountTold) { return UnknownAccountScreen(accounts: accounts, reaction: .tell) }
        if has(.unknownAccountFast) { return UnknownAccountScreen(accounts: accounts, reaction: .hurry) }
        return nil
    }

    package func keyedRequests(_ store: any IdempotencyStore) -> any IdempotencyStore {
        has(.onceForgotten) ? ForgetfulIdempotencyStore() : store
    }

    package var identityRewriter: FieldLineRewriter? {
        has(.identityFromClient) ? ClientWrittenFields.replace : nil
    }

    package func gate(
        for authorities: [String], keys: ReleaseKeyDirectory, sessions: LoopSessions,
        replay: any ReplayGuard, failures: PublicKeyFailureLimiter, clock: TrustedClock
    ) -> Gate {
        var releases: any ReleaseSource = keys
        if has(.retiredAccepted) { releases = RetirementIgnoringReleaseSource(releases) }
        if has(.legacyAlwaysOn) { releases = AnySchemeReleaseSource(releases) }
        return Gate(
            allowedHosts: has(.hostUnchecked) ? .allowingEveryHostUnchecked : AllowedHosts(authorities),
            schemes: schemes(keys: keys, sessions: sessions.directory), keys: releases,
            sessions: has(.epochUnchecked)
                ? EpochKeepingSessionSource(sessions.source) : sessions.source,
            replay: guarding(replay), failures: failures, lookups: sessions.lookups, clock: clock)
    }

    private func guarding(_ replay: any ReplayGuard) -> any ReplayGuard {
        if has(.nonceUnchecked) { return NoReplayGuard() }
        if has(.nonceBeforeSignature) { return NonceIgnoringReplayGuard(replay) }
        return has(.replayFailsOpen) ? FailOpenReplayGuard(replay) : replay
    }

    private func schemes(keys: ReleaseKeyDirectory, sessions: SessionDirectory) -> SchemeRegistry {
        var schemes = SchemeRegistry.standard.schemes
        if has(.pathFromHeader) { schemes = schemes.map { HeaderPathScheme($0) } }
        if has(.jsonFirstWins) { schemes = schemes.map { FirstMemberScheme($0) } }
        if has(.bodyUnverified) { schemes = schemes.map { UnverifiedBodyScheme($0) } }
        if has(.tokenIsBearer) {
            schemes = schemes.map { BearerTokenScheme(replacing: $0, sessions: sessions) }
        }
        if has(.macComparedByteByByte) {
            schemes = schemes.map { ByteByByteScheme($0, keys: keys, sessions: sessions) }
        }
        return SchemeRegistry(schemes)
    }

    package func handler(_ gateway: any Handler, replay: any ReplayGuard) -> any Handler {
        has(.nonceBeforeSignature) ? EarlyNonceHandler(before: gateway, replay: replay) : gateway
    }
}

/// Spends a request's nonce before its signature is verified.
final class EarlyNonceHandler: Handler {
    private let next: any Handler
    private let replay: any ReplayGuard

    init(before next: any Handler, replay: any ReplayGuard) {
        self.next = next
        self.replay = replay
    }

    func handle(_ exchange: any Exchange) async {
        do {
            try await spend(exchange.request)
        } catch {
            return await next.refuse(error, on: exchange)
        }
        await next.handle(exchange)
    }

    func refuse(_ refusal: Refusal, on exchange: any Exchange) async {
        await next.refuse(refusal, on: exchange)
    }

    private func spend(_ request: Request) async throws(Refusal) {
        var workspace = Workspace()
        guard let claim = try? MessageSignatures().claim(in: request, workspace: &workspace),
            case .nonce(let nonce) = claim.replay, case .unix(let created) = claim.created
        else { return }
        try await replay.insert(
            ReplayEntry(
                keyID: claim.keyID, scheme: claim.scheme, replayKey: nonce, created: created,
                now: SystemTime().now
            ))
    }
}

/// Replaces the MAC that came with a session's token by the right one, so that the token alone suffices.
struct BearerTokenScheme: FaultyScheme {
    let inner: any Scheme
    private let sessions: SessionDirectory

    init(replacing inner: any Scheme, sessions: SessionDirectory) {
        self.inner = inner
        self.sessions = sessions
    }

    func claim(
        in request: Request, names: RequestParameterNames, workspace: inout Workspace
    ) throws(Refusal) -> Claim? {
        guard let claim = try inner.claim(in: request, names: names, workspace: &workspace) else {
            return nil
        }
        if case .session(let token) = claim.holder, let (_, key) = try? sessions.session(for: token) {
            try inner.writeStringToSign(for: claim, of: request, into: &workspace)
            claim.mac = key.mac(claim.algorithm, of: workspace.text)
        }
        return claim
    }
}

/// Replaces our lines with the client's fields of the same names.
enum ClientWrittenFields {
    @Sendable static func replace(_ lines: [UInt8], by request: Request) -> [UInt8] {
        var theirs: [(name: String, line: String)] = []
        for field in request.fields {
            let name = request.text(field.name)
            guard name.hasPrefix("countersign-") else { continue }
            theirs.append((name, "\(name): \(request.text(field.value))"))
        }
        let ours = String(decoding: lines, as: UTF8.self).split(separator: "\r\n").filter { line in
            !theirs.contains { line.lowercased().hasPrefix("\($0.name):") }
        }
        return Array((ours.map(String.init) + theirs.map(\.line)).map { "\($0)\r\n" }.joined().utf8)
    }
}
