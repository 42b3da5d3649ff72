import CountersignAuthority
import CountersignGate
import CountersignWire

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
    ) { (run) throws(Fault) in
        let name = try run.appName()
        let policy = try run.deployment().app(name).policy()
        let method = Array(try run.required("METHOD").utf8)
        let target = try run.required("TARGET")
        let targets =
            target == "-"
            ? try run.console.read().split(separator: UInt8(ascii: "\n")).map { Array($0) } : [Array(target.utf8)]
        let tests = try targets.map { (target) throws(Fault) in
            try RouteTest(policy, method: method, target: target, at: run.now)
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
    private let now: Int64

    init(_ policy: Policy, method: [UInt8], target: [UInt8], at now: Int64) throws(Fault) {
        self.target = String(decoding: target, as: UTF8.self)
        guard target.first == UInt8(ascii: "/") else {
            throw Fault(.usage, "target `\(self.target)`: expected a path that begins with /")
        }
        self.policy = policy
        self.now = now
        let path = Array(target.prefix { $0 != UInt8(ascii: "?") })
        do throws(Refusal) {
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

    var text: String {
        switch outcome {
        case .success(let decision):
            let rule = policy.routes.rules[decision.index]
            let methods = rule.methods.isEmpty ? "" : " for \(rule.methodTexts.joined(separator: ","))"
            let enforcement = enforcement(decision)
            return "`\(decision.level.rawValue)` by the rule \(rule.prefixText)\(methods)"
                + (enforcement.isObserving(at: now) ? ", \(RouteText.enforcement(enforcement))" : "")
        case .failure(let refusal): return "refused as \(refusal.code.rawValue): \(refusal.detail)"
        }
    }

    var json: JSONValue {
        switch outcome {
        case .success(let decision):
            [
                "target": .string(target), "require": .string(decision.level.rawValue),
                "observed": .bool(enforcement(decision).isObserving(at: now)),
                "rule": RouteText.json(policy.routes.rules[decision.index]), "refused": .null,
            ]
        case .failure(let refusal):
            [
                "target": .string(target), "require": .null, "observed": false, "rule": .null,
                "refused": .string(refusal.code.rawValue),
            ]
        }
    }
}
