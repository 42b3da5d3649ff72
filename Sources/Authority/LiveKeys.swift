import CountersignGate
import CountersignSchemes
import CountersignWire

/// Every release key in memory, for the gate: a look-up allocates nothing and waits only
/// while a reload puts its result in place. A change made by
/// another process is seen by the next request.
///
/// Safe to share: `snapshot` is read and replaced under `lock` only.
package final class LiveKeys: KeySource, @unchecked Sendable {
    private struct Snapshot {
        var keys: [KeyID: ReleaseKey]
        /// Each app's own, without what was set for a release alone.
        var policies: [AppName: Policy]
        /// The longest window, in seconds, of any scheme whose requests are remembered.
        var longestWindow: Int
        /// The longest, in seconds, that any presigned URL may live.
        var longestLifetime: Int
        /// Where requests may be signed inside a form body.
        var signedForms: SignedForms
        /// Whose unsigned requests are.
        var hosted: LegacyHosts<HostedApp>
        var texts: RefusalTextTable
        var generation: UInt64
        var revision: Int64
    }

    private let deployment: Deployment
    /// Guards `snapshot`.
    private let lock = ReadWriteLock()
    private var snapshot: Snapshot
    /// Lets one reload at a time, so that a change costs one reading of the store and not one a request.
    private let reloading = ReadWriteLock()

    package init(_ deployment: Deployment) throws(Fault) {
        self.deployment = deployment
        snapshot = try LiveKeys.load(deployment)
    }

    nonisolated(nonsending) package func key(for id: KeyID) async throws(Fault) -> ReleaseKey? { try find(id) }

    /// The same, without suspending. Where the store cannot be read after a change, it fails closed: an old key could
    /// be one that was just retired.
    package func find(_ id: KeyID) throws(Fault) -> ReleaseKey? {
        let generation = deployment.generation.current
        let (isCurrent, key) = lock.read { (snapshot.generation == generation, snapshot.keys[id]) }
        if isCurrent { return key }
        try reload { $0.generation != self.deployment.generation.current }
        return lock.read { snapshot.keys[id] }
    }

    /// What accounts and sessions of an app go by; nil where there is no such app.
    package func policy(of app: AppName) throws(Fault) -> Policy? {
        let generation = deployment.generation.current
        let (isCurrent, policy) = lock.read { (snapshot.generation == generation, snapshot.policies[app]) }
        if isCurrent { return policy }
        try reload { $0.generation != self.deployment.generation.current }
        return lock.read { snapshot.policies[app] }
    }

    package func allowsSignedForms(at host: Span<UInt8>) throws(Fault) -> Bool {
        let generation = deployment.generation.current
        if lock.read({ snapshot.generation != generation }) {
            try reload { $0.generation != self.deployment.generation.current }
        }
        return lock.read { snapshot.signedForms }.isAllowed(at: host)
    }

    package func app(at host: Span<UInt8>) throws(Fault) -> HostedApp? {
        let generation = deployment.generation.current
        if lock.read({ snapshot.generation != generation }) {
            try reload { $0.generation != self.deployment.generation.current }
        }
        guard case .one(let app) = lock.read({ snapshot.hosted }).find(at: host) else { return nil }
        return app
    }

    /// The apps of which some requests reach the backend although they would be refused, and when the last of
    /// that ends, in whole Unix seconds.
    package func observed(at now: Int64) -> [String: Int64] {
        var ends: [String: Int64] = [:]
        for (app, policy) in lock.read({ snapshot.policies }) {
            for enforcement in [policy.enforcement] + policy.routes.rules.compactMap(\.enforcement) {
                guard enforcement.isObserving(at: now), case .observe(let until) = enforcement else { continue }
                ends[app.description] = max(ends[app.description] ?? 0, until)
            }
        }
        return ends
    }

    /// The app's own words for a refusal, or the release's, in a language that the client asks for; nil where
    /// there are none. Where the store cannot be read after a change it is what was known before: words
    /// decide nothing.
    package func text(
        for code: Refusal.Code, of app: String, release: KeyID?, in languages: () -> AcceptedLanguages
    ) -> RefusalText? {
        let generation = deployment.generation.current
        if lock.read({ snapshot.generation != generation }) {
            try? reload { $0.generation != self.deployment.generation.current }
        }
        let texts = lock.read { snapshot.texts }
        return texts.isEmpty ? nil : texts.find(code, of: app, release: release, in: languages())
    }

    package var apps: [AppName] { lock.read { Array(snapshot.policies.keys) } }

    nonisolated(nonsending) package func siblings(of release: ReleaseKey) async throws(Fault) -> [ReleaseKey] {
        others(beside: release)
    }

    /// The same, without suspending: the newest by version first, and no more than an explanation will try.
    package func others(beside release: ReleaseKey) -> [ReleaseKey] {
        let all = lock.read { snapshot.keys.values.filter { release.isSibling(of: $0) } }
        return Array(all.sorted { ($0.version, $0.id.description) > ($1.version, $1.id.description) }.prefix(64))
    }

    nonisolated(nonsending) package func anyRelease(
        of app: String, on platform: String
    ) async throws(Fault) -> ReleaseKey? {
        lock.read {
            snapshot.keys.values.filter {
                $0.app == app && $0.platform == platform && $0.scheme == .messageSignatures
            }.max { $0.version < $1.version }
        }
    }

    /// The longest window, in seconds, of any policy, over the schemes whose requests are remembered.
    package var longestWindow: Int { lock.read { snapshot.longestWindow } }

    /// The longest, in seconds, that a presigned URL may live under any policy; the replay guard remembers it for as
    /// long. 0 where there are none but within the window.
    package var longestLifetime: Int { lock.read { snapshot.longestLifetime } }

    /// The store's revision that this is as of.
    package var revision: Int64 { lock.read { snapshot.revision } }

    package var count: Int { lock.read { snapshot.keys.count } }

    /// Compares with the store itself and reloads where it has moved on: for a timer, every few seconds, and for
    /// SIGHUP. It catches the change of a process that died before it could count the generation up.
    package func reconcile() throws(Fault) {
        let revision = try deployment.store.revision()
        try reload { $0.revision != revision }
    }

    private func reload(where isStale: (Snapshot) -> Bool) throws(Fault) {
        try reloading.write { () throws(Fault) in
            guard lock.read({ isStale(snapshot) }) else { return }
            let fresh = try LiveKeys.load(deployment)
            lock.write { snapshot = fresh }
        }
    }

    /// The generation is read before the store: a change that comes between the two is then loaded twice, never missed.
    private static func load(_ deployment: Deployment) throws(Fault) -> Snapshot {
        let generation = deployment.generation.current
        let stored = try deployment.store.snapshot()
        var apps: [AppName: (app: App, policy: Policy)] = [:]
        var longestWindow = 0
        var longestLifetime = 0
        var signedForms = SignedForms()
        var texts = RefusalTextTable()
        for app in stored.apps {
            let policy = try app.policy()
            apps[app.name] = (app, policy)
            longestWindow = max(longestWindow, policy.longestWindow)
            longestLifetime = max(longestLifetime, policy.longestLifetime)
            signedForms.add(policy)
            texts.add(app)
        }
        var keys: [KeyID: ReleaseKey] = [:]
        keys.reserveCapacity(stored.releases.count)
        for release in stored.releases {
            guard let owner = apps[release.app] else {
                throw Fault(.failed, "release \(release.id): its app \(release.app) is not in the store")
            }
            texts.add(release)
            let policy = release.settings.isEmpty ? owner.policy : try owner.app.policy(for: release)
            longestWindow = max(longestWindow, policy.longestWindow)
            longestLifetime = max(longestLifetime, policy.longestLifetime)
            signedForms.add(policy)
            keys[release.id] = ReleaseKey(
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
        return Snapshot(
            keys: keys, policies: apps.mapValues(\.policy), longestWindow: longestWindow,
            longestLifetime: longestLifetime, signedForms: signedForms, hosted: hosted, texts: texts,
            generation: generation, revision: stored.revision)
    }
}

extension Policy {
    /// The longest window, in seconds, of the schemes it allows and whose requests are remembered.
    fileprivate var longestWindow: Int { schemes.filter(\.isRemembered).map { window(for: $0) }.max() ?? 0 }

    /// The longest, in seconds, that it lets a presigned URL live beyond the window; 0 without sigv4.
    fileprivate var longestLifetime: Int { schemes.contains(.sigV4) ? presignedLifetime ?? 0 : 0 }
}

extension SchemeName {
    /// Whether equal requests of this scheme can be told apart, and so remembered. Source: docs/protocol.md, the table
    /// of replay keys.
    package var isRemembered: Bool {
        switch self {
        case .messageSignatures, .sigV4, .formMD5, .authV1: true
        case .authV2, .authV4, .token: false
        }
    }
}

extension ReleaseKey {
    fileprivate func isSibling(of other: ReleaseKey) -> Bool {
        app == other.app && scheme == other.scheme && id != other.id
    }
}
