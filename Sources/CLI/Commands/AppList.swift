import CountersignAuthority
import CountersignWire

extension Command {
    static let appList = Command(
        words: ["app", "list"], summary: "list the apps", options: [.data, .json]
    ) { (run) throws(Fault) in
        let stored = try run.deployment().store.snapshot()
        let rows = stored.apps.map { app in
            (name: app.name.description, created: app.created, count: stored.releases.count { $0.app == app.name })
        }
        let json = rows.map { row -> JSONValue in
            ["app": .string(row.name), "created": .integer(row.created), "releases": .integer(Int64(row.count))]
        }
        try run.print(["apps": .array(json)]) {
            if rows.isEmpty { return "no apps; `countersign app add APP` makes one" }
            return Table.text(["APP", "RELEASES"], rows.map { [$0.name, String($0.count)] })
        }
        return .success
    }
}
