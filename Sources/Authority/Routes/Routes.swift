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
        if rule.enforcement?.endsByDate == true { try requireClock(for: "route \(rule.prefixText)") }
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
        try changeApp(name) { (app) throws(OperationalError) in App.changes(to: try change(try app.routes()))
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

    /// The stored form of these rules.
    static func changes(to rules: RouteRules) -> [(name: String, setting: StoredSetting?)] {
        [(routesSetting, .text(rules.text))]
    }

    /// The app's rules, without which it has no policy.
    func routes() throws(OperationalError) -> RouteRules {
        guard case .text(let text) = settings[App.routesSetting], let rules = RouteRules(text) else {
            throw OperationalError(
                .failed,
                message: "app \(name): this build cannot read the stored rules for routes")
        }
        return rules
    }
}
