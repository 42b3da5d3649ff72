import CountersignGate
import CountersignSchemes
import CountersignSeal
import CountersignWire

/// The apps whose old clients sign in here, in memory, their sealed settings opened once for each change of any app. A change
/// made by another process is seen by the next login.
///
/// Safe to share: `snapshot` is read and replaced under `lock` only.
package final class LegacyApps: @unchecked Sendable {
    private struct Snapshot {
        var apps: [LegacyApp]
        /// Whose unsigned logins are: of all apps, also those without `legacy-login`.
        var hosts: LegacyHosts<AppName>
        var screen: LegacyScreen
        var generation: UInt64
    }

    private let deployment: Deployment
    private let lock = ReadWriteLock()
    private var snapshot: Snapshot
    /// Lets one reload at a time.
    private let reloading = ReadWriteLock()

    package init(_ deployment: Deployment) throws(Fault) {
        self.deployment = deployment
        snapshot = try LegacyApps.load(deployment)
    }

    /// What tells the requests that may be for these apps' doors. Good while its generation is
    /// ``generation``.
    package var screen: LegacyScreen { get throws(Fault) { try current().screen } }

    /// Of the deployment, as it is now. Asking costs one load.
    package var generation: UInt64 { deployment.generation.current }

    /// The app of that name; nil where its policy does not have `legacy-login`.
    package func app(named name: String) throws(Fault) -> LegacyApp? {
        try current().apps.first { $0.name.description == name }
    }

    /// The app that an unsigned login to `host` belongs to. It is the app whose `legacy-host` this is, as for
    /// other unsigned requests; where no app names the host, the only app with `legacy-login`. Nil if several
    /// apps qualify, or the app does not have `legacy-login`. `host` is as the client wrote it.
    package func app(at host: Span<UInt8>) throws(Fault) -> LegacyApp? {
        let known = try current()
        switch known.hosts.find(at: host) {
        case .one(let name): return known.apps.first { $0.name == name }
        case .several: return nil
        case .nobody: return known.apps.count == 1 ? known.apps[0] : nil
        }
    }

    /// Where the store cannot be read after a change it fails closed: the change may have closed the ladder.
    private func current() throws(Fault) -> Snapshot {
        let generation = deployment.generation.current
        let known = lock.read { snapshot }
        if known.generation == generation { return known }
        return try reloading.write { () throws(Fault) in
            let held = lock.read { snapshot }
            guard held.generation != deployment.generation.current else { return held }
            let fresh = try LegacyApps.load(deployment)
            lock.write { snapshot = fresh }
            return fresh
        }
    }

    /// The generation is read before the store: a change that comes between the two is then loaded twice, never missed.
    private static func load(_ deployment: Deployment) throws(Fault) -> Snapshot {
        let generation = deployment.generation.current
        var apps: [LegacyApp] = []
        var hosts = LegacyHosts<AppName>()
        for app in try deployment.store.apps() {
            let policy = try app.policy()
            if let host = policy.legacyHost { hosts.add(app.name, at: host) }
            guard policy.legacyLogin == .allowed else { continue }
            apps.append(LegacyApp(name: app.name, policy: policy, ladder: try deployment.ladder(of: app, policy)))
        }
        return Snapshot(
            apps: apps, hosts: hosts, screen: LegacyScreen(of: apps, generation: generation),
            generation: generation)
    }
}

/// An app whose old clients sign in here.
package struct LegacyApp: Sendable {
    package let name: AppName
    package let policy: Policy
    package let ladder: LadderSettings
    package let doors: LegacyDoors

    init(name: AppName, policy: Policy, ladder: LadderSettings) {
        self.name = name
        self.policy = policy
        self.ladder = ladder
        doors = LegacyDoors(policy)
    }
}

extension Deployment {
    /// What an app's clients have built in for the ladder, opened.
    package func ladder(of app: App, _ policy: Policy) throws(Fault) -> LadderSettings {
        LadderSettings(
            salt: try opened("legacy-salt", of: app), key: try opened("legacy-key", of: app),
            timezoneOffset: policy.timezoneOffset)
    }

    private func opened(_ name: String, of app: App) throws(Fault) -> Secret? {
        guard case .sealed(let sealed) = app.settings[name] else { return nil }
        guard let secret = open(sealed, as: .policy(name, of: app.name)) else {
            throw Fault(.failed, "app \(app.name): policy \(name): its sealed value does not open; the row was altered")
        }
        return secret
    }
}
