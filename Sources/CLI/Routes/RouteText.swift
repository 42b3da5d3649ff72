import CountersignAuthority
import CountersignGate
import CountersignWire

/// Rules for routes as people and scripts are shown them.
enum RouteText {
    static func meaning(of level: RouteRule.Level) -> String {
        switch level {
        case .open: "anybody may call them"
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
        if !rule.methods.isEmpty, !rules.rules.contains(where: { $0.prefix == rule.prefix && $0.methods.isEmpty }) {
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

    static func enforcement(_ enforcement: Enforcement?) -> String {
        switch enforcement {
        case nil: "-"
        case .enforce: "enforce"
        case .observe(let until): "observe until \(Moment.text(until))"
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
        ]
    }

    static func table(_ rules: [RouteRule]) -> String {
        Table.text(
            ["ROUTE", "METHODS", "REQUIRES", "ENFORCEMENT"],
            rules.reversed().map { rule in
                [
                    rule.prefixText, rule.methods.isEmpty ? "all" : rule.methodTexts.joined(separator: ","),
                    rule.level.rawValue, enforcement(rule.enforcement),
                ]
            })
    }
}

extension Invocation {
    /// Nil where the option is not given.
    func routeLevel(_ option: String) throws(Fault) -> RouteRule.Level? {
        guard let text = arguments.value(option) else { return nil }
        guard let level = RouteRule.Level(rawValue: text) else {
            throw Fault(.usage, "--\(option) `\(text)`: expected open, signed, session or device")
        }
        return level
    }

    /// Upper-case names, sorted; none where the option is not given.
    func routeMethods() -> [String] {
        arguments.value("methods").map { $0.split(separator: ",").map { $0.uppercased() }.sorted() } ?? []
    }
}
