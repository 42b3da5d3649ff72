import CountersignAuthority
import CountersignGate
import CountersignSchemes
import CountersignWire

extension Command {
    static let releasePolicy = Command(
        words: ["release", "policy"], summary: "show or change what one release's callers are judged by",
        positionals: [Positional(name: "KEY_ID")],
        options: [
            .list("set", "KEY=VALUE", "change a setting; an empty VALUE gives it back to the app"), .data, .json,
        ],
        notes: """
            A setting of the release stands in place of the app's, whole: window=10s leaves nothing of the app's windows.
            Keys:

            """
                + PolicyKey.described(PolicyKey.judged)
    ) { (run) throws(Fault) in
        let id = try run.keyID(run.required("KEY_ID"), at: "KEY_ID")
        let deployment = try run.deployment()
        let assignments = run.arguments.values("set")
        if !assignments.isEmpty {
            try PolicyChange.check(assignments) { (text) throws(Fault) in _ = try PolicyKey.changeOfRelease(text) }
            try deployment.setPolicy(assignments, ofRelease: id)
        }
        let release = try deployment.release(id)
        let app = try deployment.app(release.app)
        let rows = PolicyKey.judged.map { ReleaseSetting($0, release, app) }
        let json = rows.map { row -> JSONValue in
            [
                "key": .string(row.key.name), "value": .string(row.value), "from": .string(row.origin.rawValue),
                "meaning": .string(row.key.meaning),
            ]
        }
        try run.print([
            "key_id": .string(id.description), "app": .string(app.name.description), "policy": .array(json),
        ]) {
            rows.map { "\($0.key.name)=\($0.value)  (\($0.origin.rawValue))\n    \($0.key.meaning)" }
                .joined(separator: "\n")
        }
        if try !app.policy(for: release).schemes.contains(release.scheme) {
            run.console.note(
                "note: \(id) signs with \(release.scheme.rawValue), which this policy does not allow: "
                    + "its requests are refused")
        }
        return .success
    }
}

/// A setting as a release has it, and where it comes from.
private struct ReleaseSetting {
    enum Origin: String { case release, app, `default` }

    var key: PolicyKey
    var value: String
    var origin: Origin

    init(_ key: PolicyKey, _ release: Release, _ app: App) {
        self.key = key
        if let own = release.settings[key.name] {
            (value, origin) = (own, .release)
        } else if case .text(let text) = app.settings[key.name] {
            (value, origin) = (text, .app)
        } else {
            (value, origin) = (key.fallback, .default)
        }
    }
}
