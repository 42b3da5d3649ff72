import CountersignAuthority
import CountersignWire

extension Command {
    static let appPolicy = Command(
        words: ["app", "policy"], summary: "show or change what an app's callers are judged by",
        positionals: [Positional(name: "APP")],
        options: [.list("set", "KEY=VALUE", "change a setting; an empty VALUE restores the default"), .data, .json],
        notes: "Without --set, shows every setting. Keys:\n" + PolicyKey.described(PolicyKey.all)
    ) { (run) throws(Fault) in
        let name = try run.appName()
        let deployment = try run.deployment()
        let assignments = run.arguments.values("set")
        if !assignments.isEmpty { try deployment.setPolicy(assignments, of: name) }
        let app = try deployment.app(name)
        let rows = PolicyKey.all.map { (key: $0, shown: shown($0, of: app), isSet: app.settings[$0.name] != nil) }
        let json = rows.map { row -> JSONValue in
            [
                "key": .string(row.key.name), "value": .string(row.shown), "is_set": .bool(row.isSet),
                "default": .string(row.key.fallback), "meaning": .string(row.key.meaning),
            ]
        }
        try run.print(["app": .string(name.description), "policy": .array(json)]) {
            rows.map { row in
                "\(row.key.name)=\(row.shown)  (default\(row.isSet ? ": \(row.key.fallback)" : ""))\n    \(row.key.meaning)"
            }.joined(separator: "\n")
        }
        return .success
    }

    /// A secret is never shown again, only that there is one.
    private static func shown(_ key: PolicyKey, of app: App) -> String {
        switch app.settings[key.name] {
        case nil: key.fallback
        case .text(let text): text
        case .sealed: "(sealed)"
        }
    }
}
