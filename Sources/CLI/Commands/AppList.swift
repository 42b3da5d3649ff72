import CountersignAuthority
import CountersignGate
import CountersignSchemes
import CountersignWire

extension Command {
    static let appList = Command(
        words: ["app", "list"], summary: "list the apps", options: [.data, .json]
    ) { (run) throws(Fault) in
        let stored = try run.deployment().store.snapshot()
        var rows: [(name: String, created: Int64, count: Int, schemes: [String])] = []
        for app in stored.apps {
            let schemes = try app.policy().schemes.map(\.rawValue).sorted()
            rows.append((app.name.description, app.created, stored.releases.count { $0.app == app.name }, schemes))
        }
        let json = rows.map { row -> JSONValue in
            [
                "app": .string(row.name), "created": .integer(row.created), "releases": .integer(Int64(row.count)),
                "schemes": .strings(row.schemes),
            ]
        }
        try run.print(["apps": .array(json)]) {
            if rows.isEmpty { return "no apps; `countersign app add APP` makes one" }
            return Table.text(
                ["APP", "RELEASES", "SCHEMES"],
                rows.map { [$0.name, String($0.count), $0.schemes.joined(separator: ", ")] })
        }
        return .success
    }
}
