import CountersignAuthority
import CountersignGate
import CountersignWire

extension Command {
    static let routeList = Command(
        words: ["route", "list"], summary: "show what the backend's routes ask for",
        positionals: [Positional(name: "APP")], options: [.data, .json]
    ) { (run) throws(Fault) in
        let name = try run.appName()
        let policy = try run.deployment().app(name).policy()
        let rules = policy.routes.rules
        try run.print([
            "app": .string(name.description), "enforcement": .string(policy.enforcement.text),
            "routes": .array(rules.map { RouteText.json($0) }),
        ]) {
            guard policy.enforcement.isObserving(at: run.now) else { return RouteText.table(rules) }
            return RouteText.table(rules) + "\nof \(name), requests that fail to prove who they are reach the backend: "
                + RouteText.enforcement(policy.enforcement)
        }
        return .success
    }
}
