import CountersignAuthority
import CountersignGate
import CountersignSchemes
import CountersignWire

extension Command {
    static let appAdd = Command(
        words: ["app", "add"], summary: "register an app",
        positionals: [Positional(name: "APP")],
        options: [
            .value(
                "require", placeholder: "LEVEL",
                meaning:
                    "what the backend's routes ask for: session (the default), signed for an app without "
                    + "sessions of ours, "
                    + "open or device"),
            .list("set", placeholder: "KEY=VALUE", meaning: "a policy setting; `app policy` lists them"),
            .value(
                "slots", placeholder: "RULE", meaning: "which sessions of an account may live side by side"),
            .data, .json,
        ],
        notes: """
            APP is 1 to 64 lower-case letters, digits, `-` and `.`. The data folder is made if there is none.
            `countersign route` says what each route asks for, at any time.
            """
    ) { (run) throws(OperationalError) in
        let name = try AppName(addedAs: run.required("APP"))
        let level = try run.routeLevel("require") ?? .session
        let settings =
            run.arguments.values("set") + (run.arguments.value("slots").map { ["slots=\($0)"] } ?? [])
        let deployment = try run.deployment(absence: .create)
        let app = try deployment.addApp(name, settings: settings, requiring: level, at: run.now)
        let policy = try app.policy()
        let routes = policy.routes
        run.noteUnsignedRequests(
            of: name, in: deployment, open: level == .open,
            observed: policy.enforcement.isObserving(at: run.now))
        try run.print([
            "app": .string(app.name.description), "created": .integer(app.created),
            "routes": .array(routes.rules.map { RouteText.json($0) }),
        ]) {
            routes.differ
                ? "added \(app.name); `countersign route list \(app.name)` shows what its routes ask for"
                : "added \(app.name); its routes ask for `\(routes.rules[0].level.rawValue)`: "
                    + RouteText.meaning(of: routes.rules[0].level)
                    + RouteText.advice(for: app.name, requiring: routes.rules[0].level)
        }
        return .success
    }
}

extension Command {
    static let appList = Command(
        words: ["app", "list"], summary: "list the apps", options: [.data, .json],
        notes: """
            STATE shows what needs an operator's attention: maintenance, observing, requests that failed at
            the backend if they are at least one in twenty, and requests of versions that are not registered.
            The last two are counted today and yesterday (UTC).
            """
    ) { (run) throws(OperationalError) in
        let store = try run.deployment().store
        let stored = try store.snapshot()
        let meter = try store.meter(since: run.now / 86_400 - AppCondition.days + 1)
        var rows: [(app: App, count: Int, schemes: [String], condition: AppCondition)] = []
        for app in stored.apps {
            let schemes = try app.policy().schemes.map(\.rawValue).sorted()
            rows.append(
                (
                    app, stored.releases.count { $0.app == app.name }, schemes,
                    try AppCondition(app, meter: meter, at: run.now)
                ))
        }
        let json = rows.map { row -> JSONValue in
            [
                "app": .string(row.app.name.description), "created": .integer(row.app.created),
                "releases": .integer(Int64(row.count)),
                "schemes": .strings(row.schemes), "maintenance": .bool(row.condition.isInMaintenance),
                "observing_until": row.condition.observingUntil.map { .integer($0) } ?? .null,
                "forwarded": .integer(row.condition.forwarded), "failed": .integer(row.condition.failed),
                "unregistered": .integer(row.condition.unregistered),
            ]
        }
        try run.print(["apps": .array(json)]) {
            if rows.isEmpty { return "no apps; `countersign app add APP` makes one" }
            return Table.text(
                head: ["APP", "RELEASES", "SCHEMES", "STATE"],
                rows: rows.map { row in
                    let notes = row.condition.notes
                    return [
                        row.app.name.description, String(row.count), row.schemes.joined(separator: ", "),
                        notes.isEmpty ? "-" : notes.joined(separator: "; "),
                    ]
                })
        }
        return .success
    }
}

extension Command {
    static let appPolicy = Command(
        words: ["app", "policy"], summary: "show or change what an app's callers are judged by",
        positionals: [Positional(name: "APP")],
        options: [
            .list(
                "set", placeholder: "KEY=VALUE",
                meaning: "change a setting; an empty VALUE restores the default"),
            .value(
                "set-secret", placeholder: "KEY",
                meaning:
                    "the same, with the value from standard input: for what must not stand in "
                    + "a command line"),
            .data, .json,
        ],
        notes: "Without --set, shows every setting. Keys:\n" + PolicyKey.described(PolicyKey.all)
    ) { (run) throws(OperationalError) in
        let name = try run.appName()
        let deployment = try run.deployment()
        let assignments = run.arguments.values("set") + (try secretSetting(run).map { [$0] } ?? [])
        if !assignments.isEmpty {
            try PolicyChange.check(assignments) { (text) throws(OperationalError) in
                _ = try PolicyKey.change(text)
            }
            try deployment.setPolicy(assignments, of: name)
        }
        let app = try deployment.app(name)
        if assignments.contains(where: { $0.hasPrefix("legacy-host=") || $0.hasPrefix("enforcement=") }) {
            let policy = try app.policy()
            let rules = policy.routes.rules
            run.noteUnsignedRequests(
                of: name, in: deployment, open: rules.contains { $0.level == .open },
                observed: ([policy.enforcement] + rules.compactMap(\.enforcement)).contains {
                    $0.isObserving(at: run.now)
                })
        }
        let rows = PolicyKey.all.map {
            (key: $0, shown: shown($0, of: app), isSet: app.settings[$0.name] != nil)
        }
        let json = rows.map { row -> JSONValue in
            [
                "key": .string(row.key.name), "value": .string(row.shown), "is_set": .bool(row.isSet),
                "default": .string(row.key.fallback), "meaning": .string(row.key.meaning),
            ]
        }
        try run.print(["app": .string(name.description), "policy": .array(json)]) {
            rows.map { row in
                "\(row.key.name)=\(row.shown)  (default\(row.isSet ? ": \(row.key.fallback)" : ""))\n    "
                    + "\(row.key.meaning)"
            }.joined(separator: "\n")
        }
        return .success
    }

    /// Without the line break that ends it.
    private static func secretSetting(_ run: Invocation) throws(OperationalError) -> String? {
        guard let key = run.arguments.value("set-secret") else { return nil }
        var bytes = try run.console.read(limit: 4_096)
        if bytes.last == UInt8(ascii: "\n") { bytes.removeLast() }
        guard !bytes.isEmpty, let text = String(validating: bytes, as: UTF8.self) else {
            throw OperationalError(
                .usage, message: "--set-secret \(key): expected its value, UTF-8, on standard input")
        }
        return "\(key)=\(text)"
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

/// Settings that were given together: all of them are taken, or none.
enum PolicyChange {
    /// Throws for the first that is refused, and says what became of the others.
    static func check(_ assignments: [String], by check: (String) throws(OperationalError) -> Void)
        throws(OperationalError)
    {
        for assignment in assignments {
            do {
                try check(assignment)
            } catch {
                let others =
                    assignments.count == 1 ? "" : ": none of the \(assignments.count) settings given is set"
                throw OperationalError(error.kind, message: "\(error.message); nothing was changed\(others)")
            }
        }
    }
}
