import CountersignGate
import CountersignSchemes
import CountersignThreads
import CountersignWire

/// All release keys in memory, for the gate: a lookup allocates nothing, and waits only while a reload
/// installs its result. The next request sees a change made by another process. It throws
/// while the server's lease has lapsed.
///
/// Unchecked, because `snapshot` is guarded by a lock beside it: `lock` lets event loops read at the same
/// time, and is held whenever `snapshot` is read or replaced.
package final class ReleaseKeyDirectory: ReleaseSource, @unchecked Sendable {
    private struct Snapshot {
        var keys: [KeyID: AppRelease]
        /// Each app's policy, without the settings of single releases.
        var policies: [AppName: Policy]
        /// The longest window, in seconds, of any scheme whose requests are remembered.
        var longestWindow: Int
        /// The longest lifetime, in seconds, of a presigned URL.
        var longestLifetime: Int
        /// Whether any policy, of an app or of a release, wants callers told why they are refused.
        var explainsRefusals: Bool
        /// Of the apps without a host of their own.
        var crossOriginRules: [CrossOriginRules]
        /// Whether any app has such rules.
        var hasCrossOriginRules: Bool
        /// The hosts where requests may be signed inside a form body.
        var signedForms: SignedFormHosts
        /// The owners of unsigned requests, by host.
        var hosted: LegacyHosts<HostedApp>
        var texts: RefusalTextTable
        var generation: UInt64
        var revision: Int64
    }

    private let deployment: Deployment
    private let lease: NodeLease?
    /// Guards `snapshot`.
    private let lock = ReadWriteLock()
    private var snapshot: Snapshot
    /// How often `snapshot` was replaced; raised after that, so that what was looked up before it is read
    /// belongs to an earlier one.
    private let edition = AtomicGeneration(0)
    /// Allows one reload at a time, so that a change costs one read of the store and not one per request.
    private let reloadLock = ReadWriteLock()
    /// The pool on which ``loadIfChanged()`` loads; nil if each lookup loads what it needs.
    private let pool: WorkPool?
    /// The generation of `snapshot`.
    private let loaded: AtomicGeneration
    /// The generation that could not be loaded, and why; nil if the last load succeeded.
    private let failure = Locked<(generation: UInt64, error: OperationalError)?>(nil)

    /// `lease` is that of a server; nil for commands. With `pool`, no lookup reads the store. The code that
    /// begins a request awaits ``loadIfChanged()``, and the request's lookups use that snapshot or a later
    /// one.
    package init(
        _ deployment: Deployment, lease: NodeLease? = nil, loadingOn pool: WorkPool? = nil
    ) throws(OperationalError) {
        self.deployment = deployment
        self.lease = lease
        self.pool = pool
        snapshot = try ReleaseKeyDirectory.load(deployment)
        loaded = AtomicGeneration(snapshot.generation)
    }

    /// Whether a request that begins now must await ``loadIfChanged()``. Costs two loads of an integer.
    package var hasChanged: Bool { pool != nil && loaded.value != deployment.generation.current }

    /// Loads the current snapshot on a thread of the pool, if the store has changed. Requests that await it
    /// at the same time share one load. If the store cannot be read, lookups throw its error. Refuses with
    /// `unavailable` if too many requests wait.
    package func loadIfChanged() async throws(Refusal) {
        guard let pool, hasChanged else { return }
        let failed = failure.with { $0?.generation }
        try await pool.run {
            // Another request may have tried in the meantime.
            let current = self.deployment.generation.current
            guard failed == current || self.failure.with({ $0?.generation }) != current else { return }
            try? self.refreshIfChanged()
        }
    }

    /// Nil while the lease has lapsed, so that the gate's key ring does not use a release that it has cached.
    package var generation: ReleaseGeneration? {
        if let lease, !lease.isFresh { return nil }
        return ReleaseGeneration(store: deployment.generation.current, memory: edition.value)
    }

    /// Fails closed if the store cannot be read after a change: an old key may just have been retired.
    package func release(for id: KeyID) throws(OperationalError) -> AppRelease? {
        try lease?.requireFresh()
        return try current { $0.keys[id] }
    }

    /// The policy of an app's accounts and sessions; nil if there is no such app.
    package func policy(of app: AppName) throws(OperationalError) -> Policy? {
        try current { $0.policies[app] }
    }

    package func allowsSignedForms(at host: Span<UInt8>) throws(OperationalError) -> Bool {
        try current { $0.signedForms }.isAllowed(at: host)
    }

    package func app(at host: Span<UInt8>) throws(OperationalError) -> HostedApp? {
        try lease?.requireFresh()
        guard case .one(let app) = try current({ $0.hosted }).find(at: host) else { return nil }
        return app
    }

    /// If the store cannot be read after a change, the earlier policies count: an explanation affects no
    /// decision.
    package var explainsRefusals: Bool { latest { $0.explainsRefusals } }

    /// If the store cannot be read after a change, the earlier rules count: a preflight request moves no
    /// data.
    package var crossOriginRules: [CrossOriginRules] { latest { $0.crossOriginRules } }

    package var hasCrossOriginRules: Bool { latest { $0.hasCrossOriginRules } }

    /// Reads the current snapshot. Without a pool, first loads it if it has changed.
    private func current<Result>(_ read: (Snapshot) -> Result) throws(OperationalError) -> Result {
        let generation = deployment.generation.current
        let (isCurrent, result) = lock.read { (snapshot.generation == generation, read(snapshot)) }
        if isCurrent { return result }
        if pool == nil {
            try refreshIfChanged()
        } else if let failure = failure.with({ $0 }), failure.generation == generation {
            throw failure.error
        }
        return lock.read { read(snapshot) }
    }

    /// Reads the current snapshot, or the earlier one if the store cannot be read.
    private func latest<Result>(_ read: (Snapshot) -> Result) -> Result {
        (try? current(read)) ?? lock.read { read(snapshot) }
    }

    /// An app with routes that only observe.
    package struct ObservedApp: Sendable, Equatable {
        /// When the last of these enforcements ends, in whole Unix seconds.
        package fileprivate(set) var until: Int64
        /// Which unsigned requests are observed.
        package let host: LegacyHostClaim
    }

    /// The conditions that the policies of all apps cause.
    package func conditions(at now: Int64) -> [AppName: AppCondition] {
        lock.read { snapshot.policies }.mapValues { AppCondition($0, at: now) }
    }

    /// The apps with routes that only observe.
    package func observed(at now: Int64) -> [AppName: ObservedApp] {
        let policies = lock.read { snapshot.policies }
        let hosts = policies.compactMapValues(\.legacyHost)
        var apps: [AppName: ObservedApp] = [:]
        for (app, policy) in policies {
            for enforcement in [policy.enforcement] + policy.routes.rules.compactMap(\.enforcement) {
                guard enforcement.isObserving(at: now), case .observe(let until) = enforcement else {
                    continue
                }
                let earlier = apps[app]
                let host = earlier?.host ?? LegacyHostClaim(of: app, among: hosts)
                apps[app] = ObservedApp(until: max(earlier?.until ?? 0, until), host: host)
            }
        }
        return apps
    }

    /// The release's or app's own text for a refusal, in a language that the client accepts; nil if there
    /// is none. If the store cannot be read after a change, the earlier texts are used, since texts affect
    /// no decision.
    package func text(
        for code: Refusal.Code, of app: String, release: KeyID?, in languages: () -> AcceptedLanguages
    ) -> RefusalText? {
        let texts = latest { $0.texts }
        return texts.isEmpty ? nil : texts.find(code, of: app, release: release, in: languages())
    }

    package var apps: [AppName] { lock.read { Array(snapshot.policies.keys) } }

    /// The newest versions first, at most as many as an explanation tries.
    package func siblings(of release: AppRelease) -> [AppRelease] {
        let all = lock.read { snapshot.keys.values.filter { release.isSibling(of: $0) } }
        return Array(
            all.sorted { ($0.version, $0.id.description) > ($1.version, $1.id.description) }.prefix(64))
    }

    package func anyRelease(
        of app: String, on platform: String
    ) throws(OperationalError) -> AppRelease? {
        lock.read {
            snapshot.keys.values.filter {
                $0.app == app && $0.platform == platform && $0.scheme == .messageSignatures
            }.max { $0.version < $1.version }
        }
    }

    /// The longest window, in seconds, of any policy, over the schemes whose requests are remembered.
    package var longestWindow: Int { lock.read { snapshot.longestWindow } }

    /// The longest lifetime, in seconds, of a presigned URL under any policy; the replay guard remembers
    /// such a request for as long. 0 if presigned URLs live no longer than the window.
    package var longestLifetime: Int { lock.read { snapshot.longestLifetime } }

    /// The store's revision that the directory was loaded at.
    package var revision: Int64 { lock.read { snapshot.revision } }

    package var count: Int { lock.read { snapshot.keys.count } }

    /// Compares with the store's revision and reloads if it has changed. A timer calls it every few
    /// seconds, and SIGHUP does. It finds the change of a process that died before it incremented the
    /// generation.
    package func reconcile() throws(OperationalError) {
        let revision = try deployment.store.revision()
        try reload { $0.revision != revision }
    }

    /// Reads what the generation announces before a request asks for it.
    package func refreshIfChanged() throws(OperationalError) {
        try reload { $0.generation != self.deployment.generation.current }
    }

    private func reload(where isStale: (Snapshot) -> Bool) throws(OperationalError) {
        try reloadLock.write { () throws(OperationalError) in
            guard lock.read({ isStale(snapshot) }) else { return }
            let fresh = try load()
            lock.write { snapshot = fresh }
            edition.value &+= 1
            loaded.value = fresh.generation
        }
    }

    private func load() throws(OperationalError) -> Snapshot {
        let generation = deployment.generation.current
        do throws(OperationalError) {
            let fresh = try ReleaseKeyDirectory.load(deployment)
            failure.with { $0 = nil }
            return fresh
        } catch {
            failure.with { $0 = (generation, error) }
            throw error
        }
    }

    /// The generation is read before the store, so that a change between the two is loaded twice and never
    /// missed.
    private static func load(_ deployment: Deployment) throws(OperationalError) -> Snapshot {
        let generation = deployment.generation.current
        let stored = try deployment.store.snapshot()
        var apps: [AppName: (app: App, policy: Policy)] = [:]
        var longestWindow = 0
        var longestLifetime = 0
        var explainsRefusals = false
        var signedForms = SignedFormHosts()
        var texts = RefusalTextTable()
        for app in stored.apps {
            let policy = try app.policy()
            apps[app.name] = (app, policy)
            longestWindow = max(longestWindow, policy.longestWindow)
            longestLifetime = max(longestLifetime, policy.longestLifetime)
            explainsRefusals = explainsRefusals || policy.detail == .exact
            signedForms.add(policy)
            texts.add(app)
        }
        var keys: [KeyID: AppRelease] = [:]
        keys.reserveCapacity(stored.releases.count)
        for release in stored.releases {
            guard let owner = apps[release.app] else {
                throw OperationalError(
                    .failed, message: "release \(release.id): its app \(release.app) is not in the store")
            }
            texts.add(release)
            let policy = release.settings.isEmpty ? owner.policy : try owner.app.policy(for: release)
            longestWindow = max(longestWindow, policy.longestWindow)
            longestLifetime = max(longestLifetime, policy.longestLifetime)
            explainsRefusals = explainsRefusals || policy.detail == .exact
            signedForms.add(policy)
            keys[release.id] = AppRelease(
                id: release.id, app: release.app.description, platform: release.platform.description,
                version: release.version.description, scheme: release.scheme, policy: policy,
                retirement: release.retirement, key: try deployment.key(of: release),
                nextKey: try deployment.nextKey(of: release))
        }
        var hosted = LegacyHosts<HostedApp>()
        for (name, entry) in apps {
            guard let host = entry.policy.legacyHost else { continue }
            let tokenReleases = keys.values.filter { $0.scheme == .token && $0.app == name.description }
            hosted.add(
                HostedApp(name: name.description, policy: entry.policy, releases: tokenReleases), at: host)
        }
        let crossOrigin = apps.values.map(\.policy).filter { !$0.traffic.crossOrigin.isEmpty }
        return Snapshot(
            keys: keys, policies: apps.mapValues(\.policy), longestWindow: longestWindow,
            longestLifetime: longestLifetime, explainsRefusals: explainsRefusals,
            crossOriginRules: crossOrigin.filter { $0.legacyHost == nil }.map(\.traffic.crossOrigin),
            hasCrossOriginRules: !crossOrigin.isEmpty, signedForms: signedForms,
            hosted: hosted, texts: texts, generation: generation, revision: stored.revision)
    }
}

extension Policy {
    /// The longest window, in seconds, of the allowed schemes whose requests are remembered.
    package var longestWindow: Int { schemes.filter(\.isRemembered).map { window(for: $0) }.max() ?? 0 }

    /// The longest lifetime, in seconds, of presigned URLs; 0 without sigv4 or if the policy sets none.
    fileprivate var longestLifetime: Int { schemes.contains(.sigV4) ? presignedLifetime ?? 0 : 0 }
}

extension SchemeName {
    /// Whether requests of this scheme have a replay key, so that they can be remembered. Source:
    /// docs/protocol.md, the table of replay keys.
    package var isRemembered: Bool {
        switch traits.replayDetection {
        case .perKey, .acrossKeys: true
        case .impossible: false
        }
    }
}

extension AppRelease {
    fileprivate func isSibling(of other: AppRelease) -> Bool {
        app == other.app && scheme == other.scheme && id != other.id
    }
}
