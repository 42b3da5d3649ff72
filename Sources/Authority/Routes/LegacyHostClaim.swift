import CountersignGate
import CountersignWire

/// Whether unsigned requests can belong to an app: they belong to the app whose policy `legacy-host` names
/// their host, if no other app's does. Level `open`, and `enforcement=observe` for requests that name no
/// known release, apply to such requests alone.
package struct LegacyHostClaim: Sendable, Equatable {
    /// Another app that names the host, or the same host with a port or without it.
    package struct Conflict: Sendable, Equatable {
        package let other: AppName
        /// The host at which unsigned requests belong to neither of the apps.
        package let host: String
    }

    /// As the policy has it; nil if it names none.
    package let host: String?
    /// Sorted by the other app's name.
    package let conflicts: [Conflict]

    /// `hosts` are the legacy hosts of all apps that name one.
    package init(of app: AppName, among hosts: [AppName: String]) {
        host = hosts[app]
        guard let host else {
            conflicts = []
            return
        }
        conflicts = hosts.filter { $0.key != app }.compactMap { other, named in
            LegacyHostClaim.collision(of: host, with: named).map { Conflict(other: other, host: $0) }
        }.sorted { $0.other.description < $1.other.description }
    }

    /// Whether some unsigned requests belong to the app. False if every one that is sent to its host is
    /// another app's as well.
    package var isEffective: Bool { host != nil && !conflicts.contains { $0.host == host } }

    /// The host whose requests are both apps'; nil if there is none. A name without a port is for all ports.
    private static func collision(of one: String, with other: String) -> String? {
        if one == other || LegacyHostClaim.name(one, isFor: other) { return other }
        return LegacyHostClaim.name(other, isFor: one) ? one : nil
    }

    private static func name(_ name: String, isFor host: String) -> Bool {
        HostForms(host.utf8.span).withoutPort.map { $0.elementsEqual(name.utf8) } ?? false
    }
}

extension Deployment {
    /// Which unsigned requests can belong to an app.
    package func legacyHostClaim(of name: AppName) throws(OperationalError) -> LegacyHostClaim {
        var hosts: [AppName: String] = [:]
        for app in try store.snapshot().apps { hosts[app.name] = try app.policy().legacyHost }
        return LegacyHostClaim(of: name, among: hosts)
    }
}
