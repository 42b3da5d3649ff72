import CountersignAuthority
import CountersignWire

extension Command {
    static let accountReset = Command(
        words: ["account", "reset"], summary: "make a one-time code for a password that was forgotten",
        positionals: [Positional(name: "APP"), Positional(name: "NAME")],
        options: [
            .value("valid", "1h", "how long it is good: seconds, or 30m, 1h, at most 24h (default: 1h)"), .data, .json,
        ],
        notes: """
            The code is printed once; only its hash is kept. Deliver it by a way that you trust: whoever has it sets the password.
            Its owner uses it with `countersign signup --reset-code-stdin`, or with your app. Until then the password that stands
            goes on standing, and sessions go on; setting the new one ends them. A code takes the place of an earlier one.
            """
    ) { (run) throws(Fault) in
        let app = try run.appName()
        let name = try Invocation.accountName(run.required("NAME"))
        let lifetime = try lifetime(run)
        let deployment = try run.deployment()
        let (code, until) = try deployment.resetAccount(name, of: app, lifetime: lifetime, at: run.now)
        let json: JSONValue = [
            "app": .string(app.description), "account": .string(name.description), "reset_code": .string(code.text),
            "until": .integer(until),
        ]
        try run.print(json) { "\(code.text)" }
        if !run.arguments.has("json") { run.console.note("good for one use until \(Moment.text(until))") }
        return .success
    }

    private static func lifetime(_ run: Invocation) throws(Fault) -> Int64 {
        guard let text = run.arguments.value("valid") else { return ResetCode.lifetime }
        let unit: Int64? =
            switch text.last {
            case "s": 1
            case "m": 60
            case "h": 3600
            default: nil
            }
        let digits = unit == nil ? text[...] : text.dropLast()
        guard !digits.isEmpty, digits.utf8.allSatisfy(ASCII.isDigit), let count = Int64(digits),
            (1...86_400).contains(count), (1...86_400).contains(count * (unit ?? 1))
        else { throw Fault(.usage, "--valid `\(text)`: expected 1s to 24h, such as 30m or 1h") }
        return count * (unit ?? 1)
    }
}
