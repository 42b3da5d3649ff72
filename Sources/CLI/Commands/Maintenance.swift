import CountersignAuthority
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
        try run.setMaintenance(retryAfter: run.arguments.value("retry-after") ?? "10m")
        return .success
    }

    static let maintenanceOff = Command(
        words: ["maintenance", "off"], summary: "let an app's requests reach the backend again",
        options: appOptions + [.data, .json],
        notes: "A release that has the setting by itself (`release policy`) keeps it."
    ) { (run) throws(OperationalError) in
        try run.setMaintenance(retryAfter: nil)
        return .success
    }

    static let maintenanceStatus = Command(
        words: ["maintenance", "status"], summary: "show which apps are in maintenance",
        options: [.data, .json],
        notes: "Exit 0 whether or not there is one. A release's own setting is shown by `release policy`."
    ) { (run) throws(OperationalError) in
        let state = try run.perform(AppOperations.maintenance, ())
        try run.print(state) {
            Table.text(
                head: ["APP", "MAINTENANCE", "RETRY AFTER"],
                rows: state.apps.map { app in
                    [
                        app.app.description, app.retryAfter == nil ? "off" : "on",
                        app.retryAfter.map { "\($0)s" } ?? "-",
                    ]
                })
        }
        return .success
    }
}

extension Invocation {
    /// Sets or removes the setting of the apps that the options name, and shows each.
    fileprivate func setMaintenance(retryAfter: String?) throws(OperationalError) {
        let named = try arguments.values("app").map { (text) throws(OperationalError) in
            try AppName(argument: text)
        }
        guard named.isEmpty == arguments.has("all") else {
            throw OperationalError(.usage, message: "expected --app APP, or --all")
        }
        let state = try perform(
            AppOperations.setMaintenance,
            MaintenanceChange(apps: named.isEmpty ? nil : named, retryAfter: retryAfter))
        try print(state) {
            state.apps.map { app in
                app.retryAfter.map { "\(app.app): in maintenance; clients try again after \($0) s" }
                    ?? "\(app.app): not in maintenance"
            }.joined(separator: "\n")
        }
    }
}
