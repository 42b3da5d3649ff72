import CountersignGate
import CountersignSchemes
import CountersignWire

/// One thing a team may decide about its app's callers: how it is spelled, what it means, how it is read. The table in
/// `PolicyKey.all` is the only description; `app policy` lists it.
package struct PolicyKey: Sendable {
    /// Whether its value may be shown again once it is set.
    package enum Visibility: Sendable {
        case shown
        /// Kept sealed, never printed.
        case secret
        /// Kept among the rules for routes, which `route list` shows.
        case rules
    }

    package var name: String
    /// What stands for the value in help.
    package var value: String
    package var meaning: String
    /// What counts while it is not set.
    package var fallback: String
    /// What a value may be, for the message about one that is not.
    package var expected: String
    package var visibility: Visibility
    /// Writes the value's meaning into the policy, and answers its one spelling; nil where it is none.
    let apply: @Sendable (inout Policy, String) -> String?

    /// For help: each key, what it means, and what counts while it is not set.
    package static func described(_ keys: [PolicyKey]) -> String {
        keys.map { "  \($0.name)=\($0.value)\n      \($0.meaning)\n      default: \($0.fallback)" }
            .joined(separator: "\n")
    }

    package static func named(_ name: String) throws(Fault) -> PolicyKey {
        if let key = all.first(where: { $0.name == name }) { return key }
        let known = all.map(\.name).joined(separator: ", ")
        throw Fault(.usage, "policy key `\(name)`: unknown; known are \(known)")
    }

    /// The one spelling of a value; a ``Fault`` of usage where it is none.
    package func canonical(_ text: String) throws(Fault) -> String {
        var policy = Policy()
        guard let spelled = apply(&policy, text) else {
            let shown = visibility != .secret ? " `\(text)`" : ""
            throw Fault(.usage, "policy \(name)\(shown): expected \(expected)")
        }
        return spelled
    }

    /// Writes a value that ``canonical(_:)`` has passed into a policy.
    package func set(_ value: String, in policy: inout Policy) {
        guard visibility == .rules, let paths = RoutePaths(value) else {
            _ = apply(&policy, value)
            return
        }
        let rules =
            name == "anonymous"
            ? policy.routes.setting(anonymous: paths) : policy.routes.setting(deviceSigned: paths)
        policy.routes = rules ?? policy.routes
    }

    /// `K=V` of `--set`, checked. An empty value takes the setting back to its default. `now`
    /// is in whole Unix seconds, for settings that end.
    package static func change(
        _ assignment: String, at now: Int64 = 0
    ) throws(Fault) -> (key: PolicyKey, value: String?) {
        guard let equals = assignment.utf8.firstIndex(of: UInt8(ascii: "=")) else {
            throw Fault(.usage, "--set `\(assignment)`: expected KEY=VALUE")
        }
        let key = try named(String(assignment[..<equals]))
        var value = String(assignment[assignment.index(after: equals)...])
        if key.name == "enforcement", !value.isEmpty { value = try Enforcement.asked(value, at: now).text }
        return (key, value.isEmpty ? nil : try key.canonical(value))
    }

    /// The same for one release, where only what the gate judges by can differ. An empty value goes back to the app's.
    package static func changeOfRelease(_ assignment: String) throws(Fault) -> (key: PolicyKey, value: String?) {
        let (key, value) = try change(assignment)
        guard judged.contains(where: { $0.name == key.name }) else {
            throw Fault(
                .usage,
                "policy \(key.name): belongs to the app, whose accounts all its releases share; "
                    + "`countersign app policy` sets it")
        }
        return (key, value)
    }
}
