import CountersignGate
import CountersignSchemes
import CountersignSeal
import CountersignThreads
import CountersignWire

/// The apps that accept legacy logins, in memory. Their sealed settings are opened once for each change of
/// any app. The next login sees a change made by another process.
///
/// Unchecked, because `snapshot` is guarded by a lock beside it: `lock` lets logins read at the same time,
/// and is held whenever `snapshot` is read or replaced.
package final class LegacyApps: @unchecked Sendable {
    private struct Snapshot {
        var apps: [LegacyApp]
        /// The owners of unsigned logins by host: all apps that name one, also those without
        /// `legacy-login`.
        var hosts: LegacyHosts<AppName>
        var screen: LegacyPathFilter
        var generation: UInt64
    }

    private let deployment: Deployment
    private let lock = ReadWriteLock()
    private var snapshot: Snapshot
    /// Allows one reload at a time.
    private let reloadLock = ReadWriteLock()

    package init(_ deployment: Deployment) throws(OperationalError) {
        self.deployment = deployment
        snapshot = try LegacyApps.load(deployment)
    }

    /// Selects the requests that may call a legacy endpoint of these apps. Valid while its generation
    /// equals ``generation``.
    package var pathFilter: LegacyPathFilter { get throws(OperationalError) { try current().screen } }

    /// The deployment's current generation. Reading it costs one load.
    package var generation: UInt64 { deployment.generation.current }

    /// The app of that name; nil if its policy does not have `legacy-login`.
    package func app(named name: String) throws(OperationalError) -> LegacyApp? {
        try current().apps.first { $0.name.description == name }
    }

    /// The app that an unsigned login to `host` belongs to. It is the app whose `legacy-host` this is, as for
    /// other unsigned requests; if no app names the host, it is the only app with `legacy-login`. Nil if
    /// several apps qualify, or the app does not have `legacy-login`. `host` is as the client wrote it.
    package func app(at host: Span<UInt8>) throws(OperationalError) -> LegacyApp? {
        let known = try current()
        switch known.hosts.find(at: host) {
        case .one(let name): return known.apps.first { $0.name == name }
        case .ambiguous: return nil
        case .noOwner: return known.apps.count == 1 ? known.apps[0] : nil
        }
    }

    /// Fails closed if the store cannot be read after a change: the change may have turned legacy logins
    /// off.
    private func current() throws(OperationalError) -> Snapshot {
        let generation = deployment.generation.current
        let known = lock.read { snapshot }
        if known.generation == generation { return known }
        return try reloadLock.write { () throws(OperationalError) in
            let held = lock.read { snapshot }
            guard held.generation != deployment.generation.current else { return held }
            let fresh = try LegacyApps.load(deployment)
            lock.write { snapshot = fresh }
            return fresh
        }
    }

    /// The generation is read before the store, so that a change between the two is loaded twice and never
    /// missed.
    private static func load(_ deployment: Deployment) throws(OperationalError) -> Snapshot {
        let generation = deployment.generation.current
        var apps: [LegacyApp] = []
        var hosts = LegacyHosts<AppName>()
        for app in try deployment.store.apps() {
            let policy = try app.policy()
            if let host = policy.legacyHost { hosts.add(app.name, at: host) }
            guard policy.legacyLogin == .allowed else { continue }
            apps.append(
                LegacyApp(
                    name: app.name, policy: policy, ladder: try deployment.ladder(of: app, policy: policy)))
        }
        return Snapshot(
            apps: apps, hosts: hosts, screen: LegacyPathFilter(of: apps, generation: generation),
            generation: generation)
    }
}

/// An app that accepts logins of legacy clients.
package struct LegacyApp: Sendable {
    package let name: AppName
    package let policy: Policy
    package let ladder: LadderSettings
    package let endpoints: LegacyEndpoints

    init(name: AppName, policy: Policy, ladder: LadderSettings) {
        self.name = name
        self.policy = policy
        self.ladder = ladder
        endpoints = LegacyEndpoints(policy)
    }
}

extension Deployment {
    /// Opens the ladder settings that an app's clients have built in.
    package func ladder(of app: App, policy: Policy) throws(OperationalError) -> LadderSettings {
        LadderSettings(
            salt: try opened("legacy-salt", of: app), key: try opened("legacy-key", of: app),
            timezoneOffset: policy.timezoneOffset)
    }

    private func opened(_ name: String, of app: App) throws(OperationalError) -> Secret? {
        guard case .sealed(let sealed) = app.settings[name] else { return nil }
        guard let secret = open(sealed, as: .policy(name, of: app.name)) else {
            throw OperationalError(
                .failed,
                message:
                    "app \(app.name): policy \(name): its sealed value does not open; the row was altered")
        }
        return secret
    }
}
