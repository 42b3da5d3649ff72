import CountersignHTTP
import CountersignMemory
import CountersignWire

/// The settings of the running server, as the last reload left them. Safe to share: a value under its lock.
final class RunningConfiguration: Sendable {
    private let value: Locked<Configuration>

    init(_ configuration: Configuration) { value = Locked(configuration) }

    var current: Configuration { value.with { $0 } }

    /// Bytes of a body that streams. Copies no other setting.
    var bodyBytes: Int { value.with { $0.limits.bodyBytes } }

    func replace(by configuration: Configuration) { value.with { $0 = configuration } }
}

/// One setting whose value differs between the running server and what its sources say now.
package struct SettingChange: Sendable, Equatable {
    /// The setting's name.
    package var name: String
    /// The values as `--print-config` shows them, without passwords and cut to a bounded length; empty for
    /// none.
    package var old: String
    package var new: String
    /// Whether the change waits for a restart.
    package var needsRestart: Bool
}

extension Configuration {
    private static let mostShownScalars = 200

    /// The settings in which `new` differs from these, in the order of the table.
    func changes(to new: Configuration) -> [SettingChange] {
        Setting.all.compactMap { setting in
            let (before, after) = (setting.show(self), setting.show(new))
            // Two values of a store or a replay guard may differ in a password alone.
            let isSecretChange =
                setting.name == "store" && store != new.store
                || setting.name == "replay" && replay != new.replay
            guard before != after || isSecretChange else { return nil }
            return SettingChange(
                name: setting.name, old: Configuration.shortened(before), new: Configuration.shortened(after),
                needsRestart: setting.needsRestart(from: self, to: new))
        }
    }

    private static func shortened(_ value: JSONValue) -> String {
        // Not by characters, of which one may have any number of combining marks.
        let scalars = Setting.text(of: value).unicodeScalars
        let shown = scalars.prefix(mostShownScalars)
        return shown.endIndex == scalars.endIndex ? String(scalars) : "\(String(shown))…"
    }

    /// These settings with those of `new` that need no restart.
    func reloaded(from new: Configuration) -> Configuration {
        var result = self
        result.limits = new.limits
        result.deadlines = new.deadlines
        result.drainDelay = new.drainDelay
        result.headRules = new.headRules
        result.upstreamSettings = new.upstreamSettings
        result.assertionAudience = new.assertionAudience
        result.adminHosts = new.adminHosts
        result.trustedProxies = new.trustedProxies
        result.forwardedCallerFields = new.forwardedCallerFields
        result.proxyProtocol = new.proxyProtocol
        result.logSampling = new.logSampling
        result.traffic = new.traffic
        result.tracing.rule = new.tracing.rule
        result.tracing.sample = new.tracing.sample
        result.tracing.callers = new.tracing.callers
        let waiting = Set(changes(to: new).filter(\.needsRestart).map(\.name))
        if !waiting.contains("upstream") { result.upstream = new.upstream }
        if waiting.contains("upstream-ca") {
            result.upstreamSettings.authorities = upstreamSettings.authorities
        }
        if waiting.contains("upstream-certificate") {
            result.upstreamSettings.identity = upstreamSettings.identity
        }
        if !waiting.contains("tls") { result.tls = new.tls }
        if !waiting.contains("log") { result.log = new.log }
        return result
    }
}
