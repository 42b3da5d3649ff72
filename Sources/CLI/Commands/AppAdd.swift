import CountersignAuthority
import CountersignWire

extension Command {
    static let appAdd = Command(
        words: ["app", "add"], summary: "register an app",
        positionals: [Positional(name: "APP")],
        options: [
            .value("slots", "RULE", "which sessions of an account may live side by side"), .data, .json,
        ],
        notes: "APP is 1 to 64 lower-case letters, digits, `-` and `.`. The data folder is made if there is none."
    ) { (run) throws(Fault) in
        let name = try run.appName()
        let settings = run.arguments.value("slots").map { ["slots=\($0)"] } ?? []
        let app = try run.deployment(absence: .makesOne).addApp(name, settings: settings, at: run.now)
        try run.print(["app": .string(app.name.description), "created": .integer(app.created)]) {
            "added \(app.name)"
        }
        return .success
    }
}
