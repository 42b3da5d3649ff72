import CountersignAuthority
import CountersignGate
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
        let new = NewApp(
            name: try AppName(addedAs: run.required("APP")),
            level: try run.routeLevel("require") ?? .session,
            settings: run.arguments.values("set")
                + (run.arguments.value("slots").map { ["slots=\($0)"] } ?? []))
        let added = try run.perform(AppOperations.add, new, absence: .create)
        run.console.note(added.notes)
        try run.print(added) {
            let (name, routes) = (added.app.name, added.routes)
            return routes.differ
                ? "added \(name); `countersign route list \(name)` shows what its routes ask for"
                : "added \(name); its routes ask for `\(routes.rules[0].level.rawValue)`: "
                    + RouteText.meaning(of: routes.rules[0].level)
                    + RouteText.advice(for: name, requiring: routes.rules[0].level)
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
        let list = try run.perform(AppOperations.list, ())
        try run.print(list) {
            if list.apps.isEmpty { return "no apps; `countersign app add APP` makes one" }
            return Table.text(
                head: ["APP", "RELEASES", "SCHEMES", "STATE"],
                rows: list.apps.map { app in
                    let notes = app.condition.notes
                    return [
                        app.app.name.description, String(app.releases), app.schemes.joined(separator: ", "),
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
        let assignments = run.arguments.values("set") + (try secretSetting(run).map { [$0] } ?? [])
        let policy =
            assignments.isEmpty
            ? try run.perform(AppOperations.policy, name)
            : try run.perform(
                AppOperations.changePolicy, PolicyChange(app: name, assignments: assignments))
        run.console.note(policy.notes)
        try run.print(policy) {
            policy.entries.map { entry in
                let (key, fallback) = (entry.key, entry.isSet ? ": \(entry.key.fallback)" : "")
                return "\(key.name)=\(entry.value)  (default\(fallback))\n    \(key.meaning)"
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
}
