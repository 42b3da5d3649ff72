import CountersignAuthority
import CountersignGate
import CountersignWire

/// A rule to set, as it was asked for.
struct RouteChange: Sendable {
    let app: AppName
    let prefix: String
    /// Upper-case names, sorted; empty for all.
    let methods: [String]
    let level: RouteRule.Level
    /// `enforce`, `observe` or `observe=14d`; nil for the app's.
    let enforcement: String?
    let limits: [(name: String, value: String)]

    static func methods(_ names: [String]) -> [String] { names.map { $0.uppercased() }.sorted() }

    /// Names that are joined by commas; none without a text.
    static func methods(in text: String?) -> [String] {
        methods(text?.split(separator: ",").map(String.init) ?? [])
    }

    fileprivate func rule(at now: Int64) throws(OperationalError) -> RouteRule {
        let enforcement = try enforcement.map { (text) throws(OperationalError) in
            try Enforcement.requested(text, at: now)
        }
        var limits = RouteLimits()
        for limit in self.limits { try limits.set(limit.name, to: limit.value) }
        let rule = RouteRule(
            prefix: Array(prefix.utf8), methods: methods.map { Array($0.utf8) }, level: level,
            enforcement: enforcement, limits: limits)
        guard let rule else {
            throw OperationalError(
                .usage,
                message: "route `\(prefix)`: expected / or a path such as /v1/news: no `/` at its end, no "
                    + "escapes, no empty or dot "
                    + "segments; methods are words of letters such as GET,POST, at most 16")
        }
        return rule
    }
}

/// Which of an app's rules.
struct RouteName: Sendable {
    let app: AppName
    let prefix: String
    /// Upper-case names, sorted; empty for the rule for all methods.
    let methods: [String]
}

/// A request that rules decide about.
struct RouteTarget: Sendable {
    let app: AppName
    let method: String
    let target: String
}

struct AppRoutes: APIRecord {
    let app: AppName
    let enforcement: Enforcement
    let rules: [RouteRule]
    /// Whether requests without a valid proof reach the backend now.
    let isObserving: Bool

    static let members: [RecordMember<AppRoutes>] = [
        RecordMember("app", \.app), RecordMember("enforcement", \.enforcement.text),
        RecordMember("routes", \.rules),
    ]
}

struct ChangedRoute: APIRecord {
    let app: AppName
    let rule: RouteRule
    /// What the rule may leave open.
    let notes: [String]

    static let members: [RecordMember<ChangedRoute>] = [
        RecordMember("app", \.app), RecordMember("route", \.rule),
    ]
}

struct RemovedRoute: APIRecord {
    let app: AppName
    let prefix: String

    static let members: [RecordMember<RemovedRoute>] = [
        RecordMember("app", \.app), RecordMember("removed", \.prefix),
    ]
}

/// What the gateway does with one target.
struct RouteTest: APIRecord {
    let target: String
    private let policy: Policy
    private let outcome: Result<RouteRules.Decision, Refusal>
    /// Which unsigned requests belong to the app.
    private let host: LegacyHostClaim
    private let now: Int64

    static let members: [RecordMember<RouteTest>] = [
        RecordMember("target", \.target), RecordMember("require", \.decision?.level),
        RecordMember("observed", \.isObserved), RecordMember("unsigned_pass", \.unsignedPass),
        RecordMember("rule", \.rule), RecordMember("refused", \.refusal?.code.rawValue),
    ]

    fileprivate init(_ tested: RouteTarget, in administration: Administration) throws(OperationalError) {
        let deployment = administration.deployment
        policy = try deployment.app(tested.app).policy()
        host = try deployment.legacyHostClaim(of: tested.app)
        (target, now) = (tested.target, administration.now)
        guard target.hasPrefix("/") else {
            throw OperationalError(.usage, message: "target `\(target)`: expected a path that begins with /")
        }
        let path = Array(target.utf8.prefix { $0 != UInt8(ascii: "?") })
        let method = Array(tested.method.utf8)
        do {
            outcome = .success(try policy.routes.decision(method: method.span, path: path.span))
        } catch {
            outcome = .failure(error)
        }
    }

    private var decision: RouteRules.Decision? { try? outcome.get() }

    /// Nil unless the gateway refuses the target, because backends read its path in several ways.
    var refusal: Refusal? { if case .failure(let refusal) = outcome { refusal } else { nil } }

    private var rule: RouteRule? { decision.map { policy.routes.rules[$0.index] } }

    private var enforcement: Enforcement { decision?.enforcement ?? policy.enforcement }

    private var isObserved: Bool { decision != nil && enforcement.isObserving(at: now) }

    /// Whether the rules let unsigned requests through, if they belong to the app.
    private var mayPassUnsigned: Bool { decision?.level == .open || isObserved }

    private var unsignedPass: Bool { host.isEffective && mayPassUnsigned }

    var text: String {
        if let refusal { return "refused as \(refusal.code.rawValue): \(refusal.detail)" }
        guard let decision, let rule else { return "" }
        let methods = rule.methods.isEmpty ? "" : " for \(rule.methodTexts.joined(separator: ","))"
        return "`\(decision.level.rawValue)` by the rule \(rule.prefixText)\(methods)"
            + (isObserved ? ", \(RouteText.enforcement(enforcement))" : "")
            + (mayPassUnsigned ? RouteText.exception(for: host) : "")
    }
}

enum RouteOperations {
    static let list = Operation<AppName, AppRoutes>(.appsRead) {
        (name, administration) throws(OperationalError) in
        let policy = try administration.deployment.app(name).policy()
        return AppRoutes(
            app: name, enforcement: policy.enforcement, rules: policy.routes.rules,
            isObserving: policy.enforcement.isObserving(at: administration.now))
    }

    static let set = Operation<RouteChange, ChangedRoute>(.appsWrite) {
        (change, administration) throws(OperationalError) in
        let rule = try change.rule(at: administration.now)
        let deployment = administration.deployment
        try deployment.setRoute(rule, of: change.app)
        let notes =
            RouteText.notes(on: rule, among: try deployment.routes(of: change.app))
            + administration.notesOnUnsignedRequests(
                of: change.app, open: rule.level == .open,
                observed: rule.enforcement?.isObserving(at: administration.now) ?? false)
        return ChangedRoute(app: change.app, rule: rule, notes: notes)
    }

    static let remove = Operation<RouteName, RemovedRoute>(.appsWrite) {
        (route, administration) throws(OperationalError) in
        try administration.deployment.removeRoute(route.prefix, methods: route.methods, of: route.app)
        return RemovedRoute(app: route.app, prefix: route.prefix)
    }

    static let test = Operation<RouteTarget, RouteTest>(.appsRead) {
        (target, administration) throws(OperationalError) in
        try RouteTest(target, in: administration)
    }
}

extension Administration {
    /// Notes on unsigned requests to which an app's rules cannot apply. `open` and `observed`: whether the
    /// rules or the policy let unsigned requests through on some route.
    func notesOnUnsignedRequests(of app: AppName, open: Bool, observed: Bool) -> [String] {
        // The change has been made: notes that cannot be written do not make it fail.
        guard let claim = try? deployment.legacyHostClaim(of: app) else { return [] }
        var notes: [String] = []
        if claim.host == nil {
            let belonging =
                "an unsigned request belongs to the app whose legacy-host it is sent to, and \(app) "
                + "names none: `countersign app policy \(app) --set legacy-host=HOST`"
            if open { notes.append("note: `open` lets no unsigned request through yet: \(belonging)") }
            if observed { notes.append("note: unsigned requests are still refused: \(belonging)") }
        }
        notes += claim.conflicts.map { conflict in
            "note: \(conflict.other) names that legacy-host, too: unsigned requests to \(conflict.host) "
                + "belong to neither app, and the rules of neither let them through"
        }
        return notes
    }
}
