import CountersignGate
import CountersignMemory
import CountersignSchemes
import CountersignSeal
import CountersignServer
import CountersignWire

/// Ignores retirement.
struct RetirementIgnoringReleaseSource: ReleaseSource {
    private let inner: any ReleaseSource

    init(_ inner: any ReleaseSource) { self.inner = inner }

    func release(for id: KeyID) throws(OperationalError) -> AppRelease? {
        try inner.release(for: id)?.altered(retirement: nil)
    }

    func allowsSignedForms(at host: Span<UInt8>) throws(OperationalError) -> Bool {
        try inner.allowsSignedForms(at: host)
    }

    func app(at host: Span<UInt8>) throws(OperationalError) -> HostedApp? {
        try inner.app(at: host)
    }

    func siblings(of release: AppRelease) throws(OperationalError) -> [AppRelease] {
        try inner.siblings(of: release)
    }

    func anyRelease(
        of app: String, on platform: String
    ) throws(OperationalError) -> AppRelease? { try inner.anyRelease(of: app, on: platform) }
}

/// Accepts a release's key for every scheme, as if the policy allowed it.
struct AnySchemeReleaseSource: ReleaseSource {
    private let inner: any ReleaseSource

    init(_ inner: any ReleaseSource) { self.inner = inner }

    func release(for id: KeyID) throws(OperationalError) -> AppRelease? {
        try inner.release(for: id)
    }

    func release(for id: KeyID, scheme: SchemeName) throws(OperationalError) -> AppRelease? {
        guard let release = try inner.release(for: id) else { return nil }
        var policy = release.policy
        policy.schemes.insert(scheme)
        return release.altered(scheme: scheme, policy: policy, retirement: release.retirement)
    }

    func allowsSignedForms(at host: Span<UInt8>) throws(OperationalError) -> Bool { true }

    func app(at host: Span<UInt8>) throws(OperationalError) -> HostedApp? { try inner.app(at: host) }

    func siblings(of release: AppRelease) throws(OperationalError) -> [AppRelease] {
        try inner.siblings(of: release)
    }

    func anyRelease(
        of app: String, on platform: String
    ) throws(OperationalError) -> AppRelease? { try inner.anyRelease(of: app, on: platform) }
}

extension AppRelease {
    fileprivate func altered(
        scheme: SchemeName? = nil, policy: Policy? = nil, retirement: Retirement?
    ) -> AppRelease {
        AppRelease(
            id: id, app: app, platform: platform, version: version, scheme: scheme ?? self.scheme,
            policy: policy ?? self.policy, retirement: retirement, key: key, nextKey: nextKey)
    }
}

/// Remembers nothing.
struct NoReplayGuard: ReplayGuard {
    init() {}

    func insertIfReady(_ entry: ReplayEntry) throws(Refusal) -> Bool { true }

    func insert(_ entry: ReplayEntry) async throws(Refusal) {}

    func lookUp(_ entry: ReplayEntry) throws(Refusal) {}
}

/// Does not track message-signatures: under the fault `nonceBeforeSignature`, another component has
/// already spent their nonces.
struct NonceIgnoringReplayGuard: ReplayGuard {
    private let inner: any ReplayGuard

    init(_ inner: any ReplayGuard) { self.inner = inner }

    func insertIfReady(_ entry: ReplayEntry) throws(Refusal) -> Bool {
        entry.scheme == .messageSignatures ? true : try inner.insertIfReady(entry)
    }

    func insert(_ entry: ReplayEntry) async throws(Refusal) {
        if entry.scheme != .messageSignatures { try await inner.insert(entry) }
    }

    func lookUp(_ entry: ReplayEntry) throws(Refusal) {
        if entry.scheme != .messageSignatures { try inner.lookUp(entry) }
    }
}

/// Admits requests that the inner guard refuses as `unavailable`.
struct FailOpenReplayGuard: ReplayGuard {
    private let inner: any ReplayGuard

    init(_ inner: any ReplayGuard) { self.inner = inner }

    func insertIfReady(_ entry: ReplayEntry) throws(Refusal) -> Bool {
        do {
            return try inner.insertIfReady(entry)
        } catch {
            guard error.code == .unavailable else { throw error }
            return true
        }
    }

    func insert(_ entry: ReplayEntry) async throws(Refusal) {
        do {
            try await inner.insert(entry)
        } catch {
            guard error.code == .unavailable else { throw error }
        }
    }

    func lookUp(_ entry: ReplayEntry) throws(Refusal) {
        try inner.lookUp(entry)
    }
}

/// Finds a session by the keys of all epochs that were ever looked up, and lets none of them expire.
struct EpochKeepingSessionSource: SessionSource {
    private let inner: any SessionSource
    // Shared by the gates of all loops, because any of them may receive a request.
    private static let seen = Locked<[SessionToken: Found]>([:])

    private struct Found: Sendable {
        let session: Session
        let key: SigningKey
    }

    init(_ inner: any SessionSource) { self.inner = inner }

    func session(
        for token: SessionToken
    ) throws(OperationalError) -> (Session, SigningKey)? {
        guard let (session, key) = try inner.session(for: token) else {
            return EpochKeepingSessionSource.seen.with { $0[token] }.map { ($0.session, $0.key) }
        }
        let lasting = session.lasting
        EpochKeepingSessionSource.seen.with { $0[token] = Found(session: lasting, key: key) }
        return (session.edition == .previous ? lasting : session, key)
    }

    func session(bearing token: Span<UInt8>) throws(OperationalError) -> Session? {
        try inner.session(bearing: token)
    }

    func deviceKey(of id: SessionID) throws(OperationalError) -> P256Point? {
        try inner.deviceKey(of: id)
    }

    func noteUse(of session: Session, at now: Int64) { inner.noteUse(of: session, at: now) }
}

extension Session {
    fileprivate var lasting: Session {
        Session(
            id: id, kind: kind, epoch: epoch, account: account, app: app, platform: platform,
            edition: .previous, binding: binding,
            expires: .max, idleEnd: idleEnd, end: end)
    }
}
