import CountersignAuthority
import CountersignServer
import CountersignThreads
import CountersignWire
import Glibc

extension Command {
    static let serve = Command(
        words: ["serve"], summary: "be the authority and gateway",
        options: serveOptions + Setting.options,
        notes: """
            Each option is also an environment variable (--limit-head: COUNTERSIGN_LIMIT_HEAD) and a key of \
            the settings
            file (limit_head). Options count before the environment, the environment before the file. \
            SIGTERM lets the
            requests in flight finish, and ends with status 0; SIGHUP does what `countersign reload` does.
            `countersign settings` lists the settings with their defaults, units and effect.
            """
    ) { (run) throws(OperationalError) in
        var sources = run.flagSources()
        if let path = run.arguments.value("config") ?? run.environment["COUNTERSIGN_CONFIG"] {
            do throws(OperationalError) {
                sources.file = (path, try Console.readFile(path, limit: Configuration.Sources.mostFileBytes))
            } catch {
                guard run.arguments.has("check-config") else { throw error }
                var result = Configuration.read(from: sources)
                result.problems.insert(
                    ConfigurationProblem(message: error.message, origin: .init(place: path, file: path)),
                    at: 0)
                return try run.report(result.check(environment: run.environment.variables))
            }
        }
        if run.arguments.has("check-config") {
            let result = Configuration.read(from: sources)
            return try run.report(result.check(environment: run.environment.variables))
        }
        let configuration = try Configuration(from: sources)
        if run.arguments.has("print-config") {
            try run.console.print(configuration.shown.prettyText)
            return .success
        }
        let start: Server.Start = run.arguments.has("takeover") ? .takingOver : .alone
        let services = try AdminServices(environment: run.environment)
        try Server.run(
            configuration, from: sources, start: start, environment: run.environment.variables,
            services: services, composition: run.composition)
        return .success
    }

    private static let serveOptions: [Option] = [
        .value(
            "config", placeholder: "F", meaning: "settings as JSON with comments (COUNTERSIGN_CONFIG)"),
        .flag(
            "takeover",
            meaning:
                "take over from the server that runs on this data folder, without an outage; "
                + "start as ever "
                + "where none does"),
        .flag("print-config", meaning: "print the settings that result, and stop"),
        .flag(
            "check-config",
            meaning: "print every problem of the settings and of the files that they name, and stop"),
        .flag("json", meaning: "print the problems as JSON"),
    ]
}

extension AdminServices {
    /// Both run commands on the same thread, so that each runs alone. The others wait, each for 10 seconds at
    /// most.
    fileprivate init(environment: Environment) throws(OperationalError) {
        let pool = try WorkPool(
            WorkPool.Bounds(workers: 1, queue: 32, patience: 10_000), for: .administration)
        let deployment = AdministeredDeployment(environment: environment.variables)
        self.init(
            api: AdminAPIService(environment: environment, deployment: deployment, pool: pool),
            console: try ConsoleService(environment: environment, deployment: deployment, pool: pool),
            commands: pool)
    }
}

extension Setting {
    /// All settings as options.
    static var options: [Option] {
        all.map { setting in
            Option(
                name: setting.name, kind: .value(setting.value), meaning: setting.meaning,
                form: ValueForm(setting.kind))
        }
    }
}

extension Invocation {
    /// The settings that are given as options and in the environment.
    fileprivate func flagSources() -> Configuration.Sources {
        var sources = Configuration.Sources()
        sources.environment = environment.variables
        for setting in Setting.all {
            for value in arguments.values(setting.name) { sources.flags.append((setting.name, value)) }
        }
        return sources
    }

    /// The same, with the settings file.
    func settingSources() throws(OperationalError) -> Configuration.Sources {
        var sources = flagSources()
        if let path = arguments.value("config") ?? environment["COUNTERSIGN_CONFIG"] {
            sources.file = (path, try Console.readFile(path, limit: Configuration.Sources.mostFileBytes))
        }
        return sources
    }

    /// What `--check-config` found: status 2 if `serve` would not start.
    fileprivate func report(_ problems: [ConfigurationProblem]) throws(OperationalError) -> ExitStatus {
        let isValid = !problems.contains { $0.severity == .error }
        try print(["valid": .bool(isValid), "problems": .array(problems.map(\.json))]) {
            (problems.map(\.text) + [isValid ? "the settings are valid" : "the settings are not valid"])
                .joined(separator: "\n")
        }
        return isValid ? .success : .usage
    }
}

extension Command {
    static let reload = Command(
        words: ["reload"], summary: "apply changed settings and certificates to the running server",
        options: [.data, .json],
        notes: """
            The running server reads its settings file again, with the options and the environment that it
            was started with, and the certificates, keys and log that the settings name. If anything is
            wrong, it applies nothing and goes on; the status is 1 then. Otherwise it applies all that needs
            no restart, and names what does. SIGHUP does the same; the report is in the log.
            """
    ) { (run) throws(OperationalError) in
        let folder = try DataFolder(run.dataFolder(), absence: .fail)
        let report = try ReloadRequest(folder).run()
        try run.console.print(run.arguments.has("json") ? report.json : report.text)
        return report.isApplied ? .success : .failed
    }

    static let restart = Command(
        words: ["restart"], summary: "replace the running server by a new process, without an outage",
        options: [.data, .json],
        notes: """
            The running server starts its program once more, from the same path and with the same arguments.
            The new process takes over the listening sockets, the replay table and the counts of login
            attempts; the old one answers the requests that it has, for no longer than --deadline-drain.
            Returns once the new one accepts connections. Where it cannot start, the old one goes on.
            `countersign serve --takeover` does the same from outside.
            """
    ) { (run) throws(OperationalError) in
        let folder = try DataFolder(run.configuration().data, absence: .fail)
        let successor = try RestartRequest(folder).run()
        try run.print(["process": .integer(Int64(successor))]) { "process \(successor) serves now" }
        return .success
    }
}
