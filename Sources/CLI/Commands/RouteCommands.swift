import CountersignAuthority
import CountersignGate
import CountersignWire

extension Command {
    static let routeSet = Command(
        words: ["route", "set"], summary: "say what the backend's routes below a path ask for",
        positionals: [Positional(name: "APP"), Positional(name: "PREFIX")],
        options: [
            .value("require", placeholder: "LEVEL", meaning: "open, signed, session or device"),
            .value(
                "methods", placeholder: "METHOD,…",
                meaning: "only for these methods (default: all); GET includes HEAD"),
            .value(
                "enforcement", placeholder: "WORD",
                meaning:
                    "enforce, observe or observe=14d: whether requests without a valid proof reach the "
                    + "backend (default: the app's)"),
            .value(
                "rate-account", placeholder: "N/UNIT",
                meaning: "how often one account may call these routes: 20/second, 100/minute,burst=20"),
            .value(
                "rate-release", placeholder: "N/UNIT",
                meaning: "how often all callers of one release may, together"),
            .value(
                "rate-address", placeholder: "N/UNIT", meaning: "how often one client address may"),
            .value(
                "max-body", placeholder: "BYTES", meaning: "the longest body (default: the server's limit)"),
            .value(
                "max-head", placeholder: "BYTES", meaning: "the longest head (default: the server's limit)"),
            .data, .json,
        ],
        notes: """
            The rule with the longest path counts, by whole segments: /v1 is for /v1 and /v1/news, not for
            /v10. PREFIX / is for all that no other rule is for. Levels: open admits every request; signed
            requires a release's signature (or what stands for it in the app's schemes); session for a
            signed-in user; device for a signature by the key of the session's device, too. Where routes
            differ, a path that backends read in several ways is refused, and of several rules that a
            backend could apply the strictest counts. A form's `_method` is not looked at. Setting a rule
            again replaces it whole, its limits included.
            """
    ) { (run) throws(OperationalError) in
        let name = try run.appName()
        let prefix = try run.required("PREFIX")
        guard let level = try run.routeLevel("require") else {
            throw OperationalError(.usage, message: "--require: expected open, signed, session or device")
        }
        let enforcement = try run.arguments.value("enforcement").map { (text) throws(OperationalError) in
            try Enforcement.requested(text, at: run.now)
        }
        let methods = run.routeMethods()
        let rule = RouteRule(
            prefix: Array(prefix.utf8), methods: methods.map { Array($0.utf8) }, level: level,
            enforcement: enforcement, limits: try run.routeLimits())
        guard let rule else {
            throw OperationalError(
                .usage,
                message: "route `\(prefix)`: expected / or a path such as /v1/news: no `/` at its end, no "
                    + "escapes, no empty or dot "
                    + "segments; methods are words of letters such as GET,POST, at most 16")
        }
        let deployment = try run.deployment()
        try deployment.setRoute(rule, of: name)
        for note in RouteText.notes(on: rule, among: try deployment.routes(of: name)) {
            run.console.note(note)
        }
        run.noteUnsignedRequests(
            of: name, in: deployment, open: rule.level == .open,
            observed: enforcement?.isObserving(at: run.now) ?? false)
        try run.print(["app": .string(name.description), "route": RouteText.json(rule)]) {
            let which = methods.isEmpty ? "" : methods.joined(separator: ",") + " of "
            let observed = enforcement.map { ", \(RouteText.enforcement($0))" } ?? ""
            let limits = rule.limits.texts.map { ", \($0.name) \($0.value)" }.joined()
            return
                "\(name): \(which)\(prefix) asks for `\(level.rawValue)`: "
                + "\(RouteText.meaning(of: level))\(observed)\(limits)"
        }
        return .success
    }

    static let routeRemove = Command(
        words: ["route", "remove"], summary: "take a rule for routes away",
        positionals: [Positional(name: "APP"), Positional(name: "PREFIX")],
        options: [
            .value(
                "methods", placeholder: "METHOD,…",
                meaning: "the rule for these methods (default: the one for all)"), .data, .json,
        ],
        notes: "What it was for then goes by the next shorter rule. The rule for / stays: set it instead."
    ) { (run) throws(OperationalError) in
        let name = try run.appName()
        let prefix = try run.required("PREFIX")
        try run.deployment().removeRoute(prefix, methods: run.routeMethods(), of: name)
        try run.print(["app": .string(name.description), "removed": .string(prefix)]) {
            "\(name): removed \(prefix)"
        }
        return .success
    }
}

extension Command {
    static let routeList = Command(
        words: ["route", "list"], summary: "show what the backend's routes ask for",
        positionals: [Positional(name: "APP")], options: [.data, .json]
    ) { (run) throws(OperationalError) in
        let name = try run.appName()
        let policy = try run.deployment().app(name).policy()
        let rules = policy.routes.rules
        try run.print([
            "app": .string(name.description), "enforcement": .string(policy.enforcement.text),
            "routes": .array(rules.map { RouteText.json($0) }),
        ]) {
            guard policy.enforcement.isObserving(at: run.now) else { return RouteText.table(rules) }
            return RouteText.table(rules)
                + "\nof \(name), requests without a valid proof reach the backend: "
                + RouteText.enforcement(policy.enforcement)
        }
        return .success
    }
}

extension Command {
    static let routeTest = Command(
        words: ["route", "test"], summary: "say which rule decides about a request",
        positionals: [Positional(name: "APP"), Positional(name: "METHOD"), Positional(name: "TARGET")],
        options: [.data, .json],
        notes: """
            TARGET is what stands in the request line: a path, with or without a query; `-` reads many from
            standard input, one a line. Exit 1 where the gateway refuses one as malformed, because backends
            read its path in several ways.
            """
    ) { (run) throws(OperationalError) in
        let name = try run.appName()
        let deployment = try run.deployment()
        let policy = try deployment.app(name).policy()
        let claim = try deployment.legacyHostClaim(of: name)
        let method = Array(try run.required("METHOD").utf8)
        let target = try run.required("TARGET")
        let targets =
            target == "-"
            ? try run.console.read().split(separator: UInt8(ascii: "\n")).map { Array($0) }
            : [Array(target.utf8)]
        let tests = try targets.map { (target) throws(OperationalError) in
            try RouteTest(policy, host: claim, method: method, target: target, at: run.now)
        }
        if target == "-" {
            try run.print(["app": .string(name.description), "tests": .array(tests.map(\.json))]) {
                tests.map { "\($0.target): \($0.text)" }.joined(separator: "\n")
            }
        } else {
            for test in tests { try run.print(test.json) { test.text } }
        }
        return tests.contains { $0.isRefused } ? .failed : .success
    }
}

/// What the gateway does with one target.
private struct RouteTest {
    let target: String
    private let policy: Policy
    private let outcome: Result<RouteRules.Decision, Refusal>
    /// Which unsigned requests belong to the app.
    private let host: LegacyHostClaim
    private let now: Int64

    init(
        _ policy: Policy, host: LegacyHostClaim, method: [UInt8], target: [UInt8], at now: Int64
    ) throws(OperationalError) {
        self.host = host
        self.target = String(decoding: target, as: UTF8.self)
        guard target.first == UInt8(ascii: "/") else {
            throw OperationalError(
                .usage, message: "target `\(self.target)`: expected a path that begins with /")
        }
        self.policy = policy
        self.now = now
        let path = Array(target.prefix { $0 != UInt8(ascii: "?") })
        do {
            outcome = .success(try policy.routes.decision(method: method.span, path: path.span))
        } catch {
            outcome = .failure(error)
        }
    }

    var isRefused: Bool {
        if case .failure = outcome { return true }
        return false
    }

    private func enforcement(_ decision: RouteRules.Decision) -> Enforcement {
        decision.enforcement ?? policy.enforcement
    }

    /// Whether the rules let unsigned requests through, if they belong to the app.
    private func mayPassUnsigned(_ decision: RouteRules.Decision) -> Bool {
        decision.level == .open || enforcement(decision).isObserving(at: now)
    }

    var text: String {
        switch outcome {
        case .success(let decision):
            let rule = policy.routes.rules[decision.index]
            let methods = rule.methods.isEmpty ? "" : " for \(rule.methodTexts.joined(separator: ","))"
            let enforcement = enforcement(decision)
            return "`\(decision.level.rawValue)` by the rule \(rule.prefixText)\(methods)"
                + (enforcement.isObserving(at: now) ? ", \(RouteText.enforcement(enforcement))" : "")
                + (mayPassUnsigned(decision) ? RouteText.exception(for: host) : "")
        case .failure(let refusal): return "refused as \(refusal.code.rawValue): \(refusal.detail)"
        }
    }

    var json: JSONValue {
        switch outcome {
        case .success(let decision):
            [
                "target": .string(target), "require": .string(decision.level.rawValue),
                "observed": .bool(enforcement(decision).isObserving(at: now)),
                "unsigned_pass": .bool(host.isEffective && mayPassUnsigned(decision)),
                "rule": RouteText.json(policy.routes.rules[decision.index]), "refused": .null,
            ]
        case .failure(let refusal):
            [
                "target": .string(target), "require": .null, "observed": false, "unsigned_pass": false,
                "rule": .null, "refused": .string(refusal.code.rawValue),
            ]
        }
    }
}

/// Rules for routes as people and scripts are shown them.
enum RouteText {
    static func meaning(of level: RouteRule.Level) -> String {
        switch level {
        case .open: "every client may call them"
        case .signed: "a release may call them by itself"
        case .session: "callers must be signed in"
        case .device: "callers must be signed in, and their device must sign"
        }
    }

    /// What to do where that is not what the team wants.
    static func advice(for app: AppName, requiring level: RouteRule.Level) -> String {
        guard level == .session else { return "" }
        return "\n`countersign route set \(app) / --require signed` lets a release call them by itself"
    }

    /// What such a rule may leave open.
    static func notes(on rule: RouteRule, among rules: RouteRules) -> [String] {
        var notes: [String] = []
        let path = rule.prefixText
        if !rule.methods.isEmpty,
            !rules.rules.contains(where: { $0.prefix == rule.prefix && $0.methods.isEmpty })
        {
            notes.append(
                "note: other methods of \(path) go by a shorter rule; `countersign route test` says "
                    + "which, and a rule for "
                    + "\(path) without --methods stands before it")
        }
        if path.split(separator: "/").last?.contains(".") == true {
            notes.append(
                "note: \(path) names a file; backends may answer it at other paths, too (without its "
                    + "extension, or at its "
                    + "folder): a rule for the folder covers them")
        }
        return notes
    }

    /// Why unsigned requests are refused where level or enforcement would let them through; empty if some
    /// of them belong to the app.
    static func exception(for claim: LegacyHostClaim) -> String {
        guard !claim.isEffective else { return "" }
        guard let host = claim.host else {
            return ", but not for unsigned requests: the app's policy names no legacy-host"
        }
        let others = claim.conflicts.filter { $0.host == host }.map(\.other.description)
        return ", but not for unsigned requests: legacy-host \(host) is also named by "
            + others.joined(separator: ", ")
    }

    static func enforcement(_ enforcement: Enforcement?) -> String {
        switch enforcement {
        case nil: "-"
        case .enforce: "enforce"
        case .observe(let until): "observe until \(TimeText.text(until))"
        }
    }

    static func json(_ rule: RouteRule) -> JSONValue {
        var until: JSONValue = .null
        var word: JSONValue = .null
        if let enforcement = rule.enforcement {
            word = "enforce"
            if case .observe(let end) = enforcement {
                word = "observe"
                until = .integer(end)
            }
        }
        return [
            "prefix": .string(rule.prefixText), "methods": .strings(rule.methodTexts),
            "require": .string(rule.level.rawValue), "enforcement": word, "observe_until": until,
            "limits": .object(rule.limits.texts.map { (name: $0.name, value: .string($0.value)) }),
        ]
    }

    static func table(_ rules: [RouteRule]) -> String {
        Table.text(
            head: ["ROUTE", "METHODS", "REQUIRES", "ENFORCEMENT", "LIMITS"],
            rows: rules.reversed().map { rule in
                [
                    rule.prefixText, rule.methods.isEmpty ? "all" : rule.methodTexts.joined(separator: ","),
                    rule.level.rawValue, enforcement(rule.enforcement),
                    rule.limits.isEmpty
                        ? "-" : rule.limits.texts.map { "\($0.name)=\($0.value)" }.joined(separator: " "),
                ]
            })
    }
}

extension Invocation {
    /// Nil where the option is not given.
    func routeLevel(_ option: String) throws(OperationalError) -> RouteRule.Level? {
        guard let text = arguments.value(option) else { return nil }
        guard let level = RouteRule.Level(rawValue: text) else {
            throw OperationalError(
                .usage, message: "--\(option) `\(text)`: expected open, signed, session or device")
        }
        return level
    }

    /// Notes to which unsigned requests an app's rules cannot apply. `open` and `observed`: whether the rules
    /// or the policy let unsigned requests through on some route.
    func noteUnsignedRequests(
        of app: AppName, in deployment: Deployment, open: Bool, observed: Bool
    ) {
        // The change has been made: a note that cannot be written does not make it fail.
        guard let claim = try? deployment.legacyHostClaim(of: app) else { return }
        if claim.host == nil {
            let belonging =
                "an unsigned request belongs to the app whose legacy-host it is sent to, and \(app) "
                + "names none: `countersign app policy \(app) --set legacy-host=HOST`"
            if open { console.note("note: `open` lets no unsigned request through yet: \(belonging)") }
            if observed { console.note("note: unsigned requests are still refused: \(belonging)") }
        }
        for conflict in claim.conflicts {
            console.note(
                "note: \(conflict.other) names that legacy-host, too: unsigned requests to \(conflict.host) "
                    + "belong to neither app, and the rules of neither let them through")
        }
    }

    /// The limits that the options name.
    func routeLimits() throws(OperationalError) -> RouteLimits {
        var limits = RouteLimits()
        for name in RouteLimits.names {
            if let value = arguments.value(name) { try limits.set(name, to: value) }
        }
        return limits
    }

    /// Upper-case names, sorted; none where the option is not given.
    func routeMethods() -> [String] {
        arguments.value("methods").map { $0.split(separator: ",").map { $0.uppercased() }.sorted() } ?? []
    }
}
