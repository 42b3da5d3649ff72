import CountersignAuthority
import CountersignWire

extension Command {
    static let accountList = Command(
        words: ["account", "list"], summary: "list an app's accounts",
        positionals: [Positional(name: "APP")],
        options: [
            .value("limit", "N", "at most so many, 1 to 100000 (default: 1000)"),
            .value("after", "NUMBER", "those behind this number, which the list before ended with"), .data, .json,
        ],
        notes:
            "In the order in which they were made; removed ones too. With --json, `next` is the number to go on --after, or null."
    ) { (run) throws(Fault) in
        let app = try run.appName()
        let limit = try run.number("limit", in: 1...100_000) ?? 1000
        let after = try run.number("after", in: 0...Int.max) ?? 0
        // One more than is shown tells whether there are more.
        var accounts = try run.deployment().accounts(of: app, after: Int64(after), limit: limit + 1)
        let next = accounts.count > limit ? accounts[limit - 1].number : nil
        accounts = Array(accounts.prefix(limit))
        let json: JSONValue = [
            "app": .string(app.description), "accounts": .array(accounts.map(\.json)),
            "next": next.map { .integer($0) } ?? .null,
        ]
        try run.print(json) {
            if accounts.isEmpty { return "no accounts; `countersign account add \(app) NAME` makes one" }
            return Table.text(
                ["NAME", "STATE", "SIGNS IN BY", "USER ID", "SINCE"],
                accounts.map { account in
                    [
                        account.name.description, account.state.rawValue, account.credential,
                        account.userID.map(String.init) ?? "-", Moment.text(account.created),
                    ]
                })
        }
        if let next { run.console.note("there are more: --after \(next)") }
        return .success
    }
}

extension Invocation {
    /// A whole number given by name; nil where it is not given.
    func number(_ name: String, in range: ClosedRange<Int>) throws(Fault) -> Int? {
        guard let text = arguments.value(name) else { return nil }
        guard text.utf8.allSatisfy(ASCII.isDigit), let number = Int(text), range.contains(number) else {
            throw Fault(.usage, "--\(name) `\(text)`: expected a whole number from \(range.lowerBound) on")
        }
        return number
    }
}
