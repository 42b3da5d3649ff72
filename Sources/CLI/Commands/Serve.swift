import CountersignServer
import CountersignWire

extension Command {
    static let serve = Command(
        words: ["serve"], summary: "be the authority and gateway",
        options: serveOptions,
        notes: """
            Each option is also an environment variable (--limit-head: COUNTERSIGN_LIMIT_HEAD) and a key of the settings
            file (limit_head). Options count before the environment, the environment before the file. SIGTERM lets the
            requests in flight finish, and ends with status 0; SIGHUP reloads.
            """
    ) { (run) throws(Fault) in
        #if SABOTAGE
            if run.arguments.values("sabotage") == ["list"] { return try run.listFaults() }
            try run.sabotage()
        #endif
        var sources = Configuration.Sources()
        sources.environment = run.environment.variables
        for setting in Setting.all {
            for value in run.arguments.values(setting.name) { sources.flags.append((setting.name, value)) }
        }
        if let path = run.arguments.value("config") ?? run.environment["COUNTERSIGN_CONFIG"] {
            sources.file = (path, try Console.readFile(path, limit: 1 << 20))
        }
        let configuration = try Configuration(from: sources)
        if run.arguments.has("print-config") {
            try run.console.print(configuration.shown.prettyText)
            return .success
        }
        try Server.run(
            configuration, start: run.arguments.has("takeover") ? .takingOver : .alone,
            environment: run.environment.variables)
        return .success
    }

    private static var serveOptions: [Option] {
        let options: [Option] = [
            .value("config", "F", "settings as JSON with comments (COUNTERSIGN_CONFIG)"),
            .flag(
                "takeover",
                "take over from the server that runs on this data folder, without an outage; start as ever "
                    + "where none does"),
            .flag("print-config", "print the settings that result, and stop"),
        ]
        #if SABOTAGE
            return options + [.sabotage] + Setting.all.map { .value($0.name, $0.value, $0.meaning) }
        #else
            return options + Setting.all.map { .value($0.name, $0.value, $0.meaning) }
        #endif
    }
}
