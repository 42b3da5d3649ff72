import CountersignAuthority
import CountersignGate
import CountersignWire

extension Command {
    static let appAdd = Command(
        words: ["app", "add"], summary: "register an app",
        positionals: [Positional(name: "APP")],
        options: [
            .value(
                "require", "LEVEL",
                "what the backend's routes ask for: session (the default), signed for an app without sessions of ours, "
                    + "open or device"),
            .list("set", "KEY=VALUE", "a setting, as `app policy` has them"),
            .value("slots", "RULE", "which sessions of an account may live side by side"), .data, .json,
        ],
        notes: """
            APP is 1 to 64 lower-case letters, digits, `-` and `.`. The data folder is made if there is none.
            `countersign route` says what each route asks for, at any time.
            """
    ) { (run) throws(Fault) in
        let name = try run.appName()
        let level = try run.routeLevel("require") ?? .session
        let settings = run.arguments.values("set") + (run.arguments.value("slots").map { ["slots=\($0)"] } ?? [])
        let app = try run.deployment(absence: .makesOne).addApp(
            name, settings: settings, requiring: level, at: run.now)
        let routes = try app.policy().routes
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
