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
        let changed = try run.perform(
            RouteOperations.set,
            RouteChange(
                app: name, prefix: prefix, methods: RouteChange.methods(in: run.arguments.value("methods")),
                level: level, enforcement: run.arguments.value("enforcement"),
                limits: RouteLimits.names.compactMap { limit in
                    run.arguments.value(limit).map { (limit, $0) }
                }))
        run.console.note(changed.notes)
        try run.print(changed) {
            let rule = changed.rule
            let which = rule.methods.isEmpty ? "" : rule.methodTexts.joined(separator: ",") + " of "
            let observed = rule.enforcement.map { ", \(RouteText.enforcement($0))" } ?? ""
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
        let route = RouteName(
            app: name, prefix: prefix, methods: RouteChange.methods(in: run.arguments.value("methods")))
        try run.print(try run.perform(RouteOperations.remove, route)) { "\(name): removed \(prefix)" }
        return .success
    }
}

extension Command {
    static let routeList = Command(
        words: ["route", "list"], summary: "show what the backend's routes ask for",
        positionals: [Positional(name: "APP")], options: [.data, .json]
    ) { (run) throws(OperationalError) in
        let name = try run.appName()
        let routes = try run.perform(RouteOperations.list, name)
        try run.print(routes) {
            guard routes.isObserving else { return RouteText.table(routes.rules) }
            return RouteText.table(routes.rules)
                + "\nof \(name), requests without a valid proof reach the backend: "
                + RouteText.enforcement(routes.enforcement)
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
        let (name, method) = (try run.appName(), try run.required("METHOD"))
        let target = try run.required("TARGET")
        let targets =
            target == "-"
            ? try run.console.read().split(separator: UInt8(ascii: "\n")).map {
                String(decoding: $0, as: UTF8.self)
            } : [target]
        let tests = try targets.map { (target) throws(OperationalError) in
            try run.perform(RouteOperations.test, RouteTarget(app: name, method: method, target: target))
        }
        if target == "-" {
            try run.print(["app": .string(name.description), "tests": tests.json]) {
                tests.map { "\($0.target): \($0.text)" }.joined(separator: "\n")
            }
        } else {
            for test in tests { try run.print(test) { test.text } }
        }
        return tests.contains { $0.refusal != nil } ? .failed : .success
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
}
