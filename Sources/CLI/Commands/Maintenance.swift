import CountersignAuthority
import CountersignGate
import CountersignWire

extension Command {
    private static let appOptions: [Option] = [
        .list("app", placeholder: "APP", meaning: "this app"),
        .flag("all", meaning: "all apps"),
    ]

    static let maintenanceOn = Command(
        words: ["maintenance", "on"],
        summary: "answer an app's requests with 503 while its backend is worked on",
        options: appOptions + [
            .value(
                "retry-after", placeholder: "TIME",
                meaning: "when clients are told to try again, 1s to 24h (default 10m)"),
            .data, .json,
        ],
        notes: """
            A running server follows at once. It answers requests to the backend as `maintenance`, with the
            field Retry-After; the authority's own routes (logins, refreshes, sessions), /ready and the admin
            listener go on. `countersign app messages` sets what users read. It
            stays until `maintenance off`, over restarts, too: it is the policy `maintenance`.
            """
    ) { (run) throws(OperationalError) in
        let value = run.arguments.value("retry-after") ?? "10m"
        guard PolicyKey.seconds(value[...]) != nil else {
            throw OperationalError(
                .usage, message: "--retry-after `\(value)`: expected a time from 1s to 24h such as 10m")
        }
        try run.setMaintenance("maintenance=\(value)")
        return .success
    }

    static let maintenanceOff = Command(
        words: ["maintenance", "off"], summary: "let an app's requests reach the backend again",
        options: appOptions + [.data, .json],
        notes: "A release that has the setting by itself (`release policy`) keeps it."
    ) { (run) throws(OperationalError) in
        try run.setMaintenance("maintenance=")
        return .success
    }

    static let maintenanceStatus = Command(
        words: ["maintenance", "status"], summary: "show which apps are in maintenance",
        options: [.data, .json],
        notes: "Exit 0 whether or not there is one. A release's own setting is shown by `release policy`."
    ) { (run) throws(OperationalError) in
        let apps = try run.deployment().store.apps()
        let rows = try apps.map { (app) throws(OperationalError) in
            (name: app.name.description, seconds: try app.policy().traffic.maintenance)
        }
        let json = rows.map { row -> JSONValue in
            [
                "app": .string(row.name), "maintenance": .bool(row.seconds != nil),
                "retry_after": row.seconds.map { .integer(Int64($0)) } ?? .null,
            ]
        }
        try run.print(["apps": .array(json)]) {
            Table.text(
                head: ["APP", "MAINTENANCE", "RETRY AFTER"],
                rows: rows.map {
                    [$0.name, $0.seconds == nil ? "off" : "on", $0.seconds.map { "\($0)s" } ?? "-"]
                })
        }
        return .success
    }
}

extension Invocation {
    /// Sets or removes the setting of the apps that the options name, and shows each.
    fileprivate func setMaintenance(_ assignment: String) throws(OperationalError) {
        let named = try arguments.values("app").map { (text) throws(OperationalError) in
            try AppName(argument: text)
        }
        guard named.isEmpty == arguments.has("all") else {
            throw OperationalError(.usage, message: "expected --app APP, or --all")
        }
        _ = try PolicyKey.change(assignment)
        let deployment = try deployment()
        let apps = named.isEmpty ? try deployment.store.apps().map(\.name) : named
        for app in apps { _ = try deployment.app(app) }
        var shown: [JSONValue] = []
        var lines: [String] = []
        for app in apps {
            try deployment.setPolicy([assignment], of: app)
            let seconds = try deployment.app(app).policy().traffic.maintenance
            shown.append([
                "app": .string(app.description), "maintenance": .bool(seconds != nil),
                "retry_after": seconds.map { .integer(Int64($0)) } ?? .null,
            ])
            lines.append(
                seconds.map { "\(app): in maintenance; clients try again after \($0) s" }
                    ?? "\(app): not in maintenance")
        }
        try print(["apps": .array(shown)]) { lines.joined(separator: "\n") }
    }
}
