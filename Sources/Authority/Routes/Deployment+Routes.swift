import CountersignGate
import CountersignWire

/// The rules for an app's routes. Each change is one transaction: of two administrators neither undoes the
/// other's.
extension Deployment {
    package func routes(of name: AppName) throws(Fault) -> RouteRules { try app(name).policy().routes }

    /// In the place of the rule for the same path and methods, where there is one.
    package func setRoute(_ rule: RouteRule, of name: AppName) throws(Fault) {
        try changeRoutes(of: name) { (rules) throws(Fault) in
            guard let set = rules.setting(rule) else {
                throw Fault(.failed, "app \(name): at most \(RouteRules.most) rules for routes")
            }
            return set
        }
    }

    package func removeRoute(_ prefix: String, methods: [String], of name: AppName) throws(Fault) {
        try changeRoutes(of: name) { (rules) throws(Fault) in
            let removed = rules.removing(prefix: Array(prefix.utf8), methods: methods.map { Array($0.utf8) })
            guard let removed else {
                if prefix == "/", methods.isEmpty {
                    throw Fault(.failed, "route /: says what all other routes ask for; set it to another level instead")
                }
                let named = methods.isEmpty ? prefix : "\(prefix) for \(methods.joined(separator: ","))"
                throw Fault(.failed, "app \(name): no rule for \(named); `countersign route list \(name)` shows them")
            }
            return removed
        }
    }

    private func changeRoutes(
        of name: AppName, _ change: @escaping (RouteRules) throws(Fault) -> RouteRules
    ) throws(Fault) {
        try changeApp(name) { (app) throws(Fault) in app.changes(to: try change(try app.routes())) }
    }

    /// Reads the app and changes its settings in one transaction.
    func changeApp(
        _ name: AppName, _ change: @escaping (App) throws(Fault) -> [(name: String, setting: StoredSetting?)]
    ) throws(Fault) {
        let run: (any Store) throws(Fault) -> Void = { (store) throws(Fault) in
            guard let app = try store.app(name) else { throw Deployment.noApp(name) }
            let changes = try change(app)
            let draft = self.recording(.appPolicy, .app(name), Deployment.told(changes))
            guard try store.change(name, changes, recording: draft) == .yes else { throw Deployment.noApp(name) }
        }
        for fault in try store.together([run]) { if let fault { throw fault } }
        generation.advance()
    }
}

extension App {
    /// Where rules for routes are kept among an app's settings. No `--set` names it.
    static let routesSetting = "routes"

    private static let routeAliases = ["anonymous", "device-signed"]

    /// What is stored for these rules. `anonymous` and `device-signed`, which an app of before may have, go.
    func changes(to rules: RouteRules) -> [(name: String, setting: StoredSetting?)] {
        [(App.routesSetting, .text(rules.text))]
            + App.routeAliases.filter { settings[$0] != nil }.map { (name: $0, setting: nil) }
    }

    /// The same changes with rules for routes in the place of `anonymous` and `device-signed`, which stand
    /// for them.
    func resolved(
        _ changes: [(name: String, setting: StoredSetting?)]
    ) throws(Fault) -> [(name: String, setting: StoredSetting?)] {
        let aliases = changes.filter { App.routeAliases.contains($0.name) }
        guard !aliases.isEmpty else { return changes }
        var rules = try routes()
        for alias in aliases {
            var paths = RoutePaths.under([])
            if case .text(let text)? = alias.setting { paths = RoutePaths(text) ?? paths }
            let set = alias.name == "anonymous" ? rules.setting(anonymous: paths) : rules.setting(deviceSigned: paths)
            guard let set else { throw Fault(.failed, "app \(name): at most \(RouteRules.most) rules for routes") }
            rules = set
        }
        return changes.filter { !App.routeAliases.contains($0.name) } + self.changes(to: rules)
    }

    /// Its rules; for an app that has none yet, what it had before there were any.
    func routes() throws(Fault) -> RouteRules {
        func text(_ name: String) -> String? {
            if case .text(let text) = settings[name] { return text }
            return nil
        }
        let rules =
            text(App.routesSetting).map { RouteRules($0) }
            ?? RouteRules(anonymous: text("anonymous"), deviceSigned: text("device-signed"))
        guard let rules else {
            throw Fault(.failed, "app \(name): its rules for routes: the store holds what this build cannot read")
        }
        return rules
    }
}
