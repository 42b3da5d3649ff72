import CountersignGate
import CountersignWire

/// The route rules of an app. Each change is one transaction, so that concurrent administrators do not undo
/// each other's changes.
extension Deployment {
    package func routes(of name: AppName) throws(OperationalError) -> RouteRules {
        try app(name).policy().routes
    }

    /// Replaces the rule for the same path and methods, if there is one.
    package func setRoute(_ rule: RouteRule, of name: AppName) throws(OperationalError) {
        try changeRoutes(of: name) { (rules) throws(OperationalError) in
            guard let set = rules.setting(rule) else {
                throw OperationalError(
                    .failed, message: "app \(name): at most \(RouteRules.most) rules for routes")
            }
            return set
        }
    }

    package func removeRoute(_ prefix: String, methods: [String], of name: AppName) throws(OperationalError) {
        try changeRoutes(of: name) { (rules) throws(OperationalError) in
            let removed = rules.removing(prefix: Array(prefix.utf8), methods: methods.map { Array($0.utf8) })
            guard let removed else {
                if prefix == "/", methods.isEmpty {
                    throw OperationalError(
                        .failed,
                        message:
                            "route /: it is the rule for all other routes; set it to another level instead")
                }
                let named = methods.isEmpty ? prefix : "\(prefix) for \(methods.joined(separator: ","))"
                throw OperationalError(
                    .missing,
                    message: "app \(name): no rule for \(named); `countersign route list \(name)` shows them")
            }
            return removed
        }
    }

    private func changeRoutes(
        of name: AppName, change: @escaping (RouteRules) throws(OperationalError) -> RouteRules
    ) throws(OperationalError) {
        try changeApp(name) { (app) throws(OperationalError) in app.changes(to: try change(try app.routes()))
        }
    }

    /// Reads the app and changes its settings in one transaction.
    func changeApp(
        _ name: AppName,
        change: @escaping (App) throws(OperationalError) -> [(name: String, setting: StoredSetting?)]
    ) throws(OperationalError) {
        let run: (any Store) throws(OperationalError) -> Void = { (store) throws(OperationalError) in
            guard let app = try store.app(name) else { throw Deployment.noApp(name) }
            let changes = try change(app)
            let draft = self.auditDraft(
                for: .appPolicy, on: .app(name), details: Deployment.auditDetails(of: changes))
            guard try store.change(name, applying: changes, recording: draft) == .yes else {
                throw Deployment.noApp(name)
            }
        }
        for fault in try store.applyTogether([run]) { if let fault { throw fault } }
        generation.advance()
    }
}

extension App {
    /// The setting under which an app's route rules are stored; `--set` does not accept it.
    static let routesSetting = "routes"

    private static let routeAliases = ["anonymous", "device-signed"]

    /// The stored form of these rules. It removes `anonymous` and `device-signed`, which an app from an
    /// earlier version may have.
    func changes(to rules: RouteRules) -> [(name: String, setting: StoredSetting?)] {
        [(App.routesSetting, .text(rules.text))]
            + App.routeAliases.filter { settings[$0] != nil }.map { (name: $0, setting: nil) }
    }

    /// The same changes with `anonymous` and `device-signed` translated to route rules.
    func resolved(
        _ changes: [(name: String, setting: StoredSetting?)]
    ) throws(OperationalError) -> [(name: String, setting: StoredSetting?)] {
        let aliases = changes.filter { App.routeAliases.contains($0.name) }
        guard !aliases.isEmpty else { return changes }
        var rules = try routes()
        for alias in aliases {
            var paths = RoutePaths.under([])
            if case .text(let text)? = alias.setting { paths = RoutePaths(text) ?? paths }
            let set =
                alias.name == "anonymous"
                ? rules.setting(anonymous: paths) : rules.setting(deviceSigned: paths)
            guard let set else {
                throw OperationalError(
                    .failed, message: "app \(name): at most \(RouteRules.most) rules for routes")
            }
            rules = set
        }
        return changes.filter { !App.routeAliases.contains($0.name) } + self.changes(to: rules)
    }

    /// The app's rules; for an app from a version without route rules, the rules that its settings mean.
    func routes() throws(OperationalError) -> RouteRules {
        func text(_ name: String) -> String? {
            if case .text(let text) = settings[name] { return text }
            return nil
        }
        let rules =
            text(App.routesSetting).map { RouteRules($0) }
            ?? RouteRules(anonymous: text("anonymous"), deviceSigned: text("device-signed"))
        guard let rules else {
            throw OperationalError(
                .failed,
                message: "app \(name): this build cannot read the stored rules for routes")
        }
        return rules
    }
}
