import CountersignAuthority
import CountersignWire
import Glibc

extension Command {
    static let accountImport = Command(
        words: ["account", "import"], summary: "take over an old backend's accounts",
        positionals: [Positional(name: "APP", presence: .optional), Positional(name: "FILE", presence: .optional)],
        options: [
            .value("app", "APP", "whose they are; may be left out where there is one app"),
            .value("format", "csv|json", "what the file is (default: by its first byte)"),
            .flag("dry-run", "read and check every line, and write nothing"), .data, .json,
        ],
        notes: """
            `countersign account import FILE`, or `account import APP FILE`. FILE is `-` for standard input. It is CSV whose first
            line is `name,user_id,rung,value`, or one JSON object a line with these members. `value` is what the old backend
            keeps; it is wrapped before it is written, which takes some 12 ms of one core a row: all cores are used.

            A line that cannot be taken is reported, and the rest is read; the exit status is then 1. Rows that are there already
            are passed over, so an import that was broken off can be run again. --dry-run finds what the file itself says wrongly
            and what is taken already, not what two lines of the file both want.
            """
    ) { (run) throws(Fault) in
        let (named, path) = try target(of: run)
        let deployment = try run.deployment()
        var app = named
        if app == nil { app = try onlyApp(of: deployment) }
        guard let app else { throw Fault(.usage, "--app is missing: expected the app whose accounts they are") }
        let job = ImportJob(
            run, try AccountImport(deployment, into: app), path, isDry: run.arguments.has("dry-run"))
        let report = try job.read()
        try run.print(report.json) { report.text }
        return report.refused == 0 ? .success : .failed
    }

    /// The app, where it is named, and the file: the last word.
    private static func target(of run: Invocation) throws(Fault) -> (app: AppName?, path: String) {
        guard let first = run.arguments.positional("APP") else {
            throw Fault(
                .usage,
                "FILE is missing: expected `countersign account import APP FILE`, FILE being - for standard input")
        }
        let option = run.arguments.value("app")
        guard let second = run.arguments.positional("FILE") else {
            return (try option.map { (text) throws(Fault) in try AppName(argument: text) }, first)
        }
        guard option == nil else { throw Fault(.usage, "--app: the app is named before the file already") }
        return (try AppName(argument: first), second)
    }

    /// Nil where there are several.
    private static func onlyApp(of deployment: Deployment) throws(Fault) -> AppName? {
        let apps = try deployment.store.apps()
        return apps.count == 1 ? apps[0].name : nil
    }
}
