import CountersignAuthority
import CountersignGate
import CountersignWire

extension Command {
    static let routeSet = Command(
        words: ["route", "set"], summary: "say what the backend's routes below a path ask for",
        positionals: [Positional(name: "APP"), Positional(name: "PREFIX")],
        options: [
            .value("require", "LEVEL", "open, signed, session or device"),
            .value("methods", "METHOD,…", "only for these methods (default: all); GET includes HEAD"),
            .value(
                "enforcement", "WORD",
                "enforce, observe or observe=14d: whether requests that fail to prove who they are reach "
                    + "the backend "
                    + "(default: the app's)"),
            .data, .json,
        ],
        notes: """
            The rule with the longest path counts, by whole segments: /v1 is for /v1 and /v1/news, not for
            /v10. PREFIX / is for all that no other rule is for. Levels: open lets anybody through; signed
            asks for a release's signature (or what stands for it in the app's schemes); session for a
            signed-in user; device for a signature by the key of the session's device, too. Where routes
            differ, a path that backends read in several ways is refused, and of several rules that a
            backend could apply the strictest counts. A form's `_method` is not looked at.
            """
    ) { (run) throws(Fault) in
        let name = try run.appName()
        let prefix = try run.required("PREFIX")
        guard let level = try run.routeLevel("require") else {
            throw Fault(.usage, "--require: expected open, signed, session or device")
        }
        let enforcement = try run.arguments.value("enforcement").map { (text) throws(Fault) in
            try Enforcement.asked(text, at: run.now)
        }
        let methods = run.routeMethods()
        let rule = RouteRule(
            prefix: Array(prefix.utf8), methods: methods.map { Array($0.utf8) }, level: level, enforcement: enforcement)
        guard let rule else {
            throw Fault(
                .usage,
                "route `\(prefix)`: expected / or a path such as /v1/news: no `/` at its end, no "
                    + "escapes, no empty or dot "
                    + "segments; methods are words of letters such as GET,POST, at most 16")
        }
        let deployment = try run.deployment()
        try deployment.setRoute(rule, of: name)
        for note in RouteText.notes(on: rule, among: try deployment.routes(of: name)) { run.console.note(note) }
        try run.print(["app": .string(name.description), "route": RouteText.json(rule)]) {
            let which = methods.isEmpty ? "" : methods.joined(separator: ",") + " of "
            let observed = enforcement.map { ", \(RouteText.enforcement($0))" } ?? ""
            return "\(name): \(which)\(prefix) asks for `\(level.rawValue)`: \(RouteText.meaning(of: level))\(observed)"
        }
        return .success
    }

    static let routeRemove = Command(
        words: ["route", "remove"], summary: "take a rule for routes away",
        positionals: [Positional(name: "APP"), Positional(name: "PREFIX")],
        options: [
            .value("methods", "METHOD,…", "the rule for these methods (default: the one for all)"), .data, .json,
        ],
        notes: "What it was for then goes by the next shorter rule. The rule for / stays: set it instead."
    ) { (run) throws(Fault) in
        let name = try run.appName()
        let prefix = try run.required("PREFIX")
        try run.deployment().removeRoute(prefix, methods: run.routeMethods(), of: name)
        try run.print(["app": .string(name.description), "removed": .string(prefix)]) { "\(name): removed \(prefix)" }
        return .success
    }
}
