import CountersignAuthority
import CountersignWire

extension Command {
    static let appPolicy = Command(
        words: ["app", "policy"], summary: "show or change what an app's callers are judged by",
        positionals: [Positional(name: "APP")],
        options: [
            .list("set", "KEY=VALUE", "change a setting; an empty VALUE restores the default"),
            .value(
                "set-secret", "KEY",
                "the same, with the value from standard input: for what must not stand in a command line"),
            .data, .json,
        ],
        notes: "Without --set, shows every setting. Keys:\n" + PolicyKey.described(PolicyKey.all)
    ) { (run) throws(Fault) in
        let name = try run.appName()
        let deployment = try run.deployment()
        let assignments = run.arguments.values("set") + (try secretSetting(run).map { [$0] } ?? [])
        if !assignments.isEmpty {
            try PolicyChange.check(assignments) { (text) throws(Fault) in _ = try PolicyKey.change(text) }
            try deployment.setPolicy(assignments, of: name)
        }
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

    /// Without the line break that ends it.
    private static func secretSetting(_ run: Invocation) throws(Fault) -> String? {
        guard let key = run.arguments.value("set-secret") else { return nil }
        var bytes = try run.console.read(limit: 4_096)
        if bytes.last == UInt8(ascii: "\n") { bytes.removeLast() }
        guard !bytes.isEmpty, let text = String(validating: bytes, as: UTF8.self) else {
            throw Fault(.usage, "--set-secret \(key): expected its value, UTF-8, on standard input")
        }
        return "\(key)=\(text)"
    }

    /// A secret is never shown again, only that there is one.
    private static func shown(_ key: PolicyKey, of app: App) -> String {
        if key.visibility == .rules { return "(`countersign route list \(app.name)`)" }
        return switch app.settings[key.name] {
        case nil: key.fallback
        case .text(let text): text
        case .sealed: "(sealed)"
        }
    }
}

/// Settings that were given together: all of them are taken, or none.
enum PolicyChange {
    /// Throws for the first that is refused, and says what became of the others.
    static func check(_ assignments: [String], by check: (String) throws(Fault) -> Void) throws(Fault) {
        for assignment in assignments {
            do throws(Fault) {
                try check(assignment)
            } catch {
                let others = assignments.count == 1 ? "" : ": none of the \(assignments.count) settings given is set"
                throw Fault(error.kind, "\(error.message); nothing was changed\(others)")
            }
        }
    }
}
