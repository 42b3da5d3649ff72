import CountersignAuthority
import CountersignSchemes
import CountersignSeal
import CountersignWire

extension Command {
    static let accountAdd = Command(
        words: ["account", "add"], summary: "make an account",
        positionals: [Positional(name: "APP"), Positional(name: "NAME")],
        options: [
            .flag(
                "password-stdin",
                meaning: "read its password from standard input: the person who runs this sees it"),
            .value(
                "legacy", placeholder: "RUNG",
                meaning: "its clients send the password as old ones do: \(rungs)"),
            .value(
                "user-id", placeholder: "N",
                meaning: "the backend's own number of the user, which it is told in place of the name; "
                    + "without it, the backend is told the name"),
            .data, .json,
        ],
        notes: """
            With --password-stdin the password passes through this command, so the person who runs it sees
            it; the store keeps the same record as after a sign-up from a device. Prefer to omit it:
            `countersign account reset APP NAME` prints a one-time code with which the owner sets a password
            that no other person sees.

            --legacy puts the account on a rung of the login ladder, by the app's legacy-salt and \
            legacy-key, and needs the
            password. What the rung needs is kept wrapped. Such logins need the policy legacy-login.
            """
    ) { (run) throws(OperationalError) in
        let app = try run.appName()
        let name = try Invocation.accountName(run.required("NAME"))
        let userID = try run.arguments.value("user-id").map { (text) throws(OperationalError) in
            try Invocation.userID(text, of: "--user-id")
        }
        let password = try run.newPassword()
        let rung = try run.rung()
        let deployment = try run.deployment()
        let account: Account
        if let rung {
            guard let password else {
                throw OperationalError(.usage, message: "--legacy: expected --password-stdin beside it")
            }
            account = try deployment.addLegacyAccount(
                name, of: app, on: rung, password: password, userID: userID, at: run.now)
        } else {
            account = try deployment.addAccount(
                name, of: app, password: password, userID: userID, at: run.now)
        }
        try run.print(account.json) {
            let hint =
                "`countersign account reset \(app) \(name)` gives its owner a code to set a password with"
            if let rung {
                let id = account.userID.map { "user id \($0)" } ?? "without a user id"
                return "added \(name) on \(rung.rawValue), \(id)"
            }
            return password == nil ? "added \(name), without a password; \(hint)" : "added \(name)"
        }
        return .success
    }
}

/// As --legacy has them.
private let rungs = Rung.allCases.map(\.rawValue).joined(separator: ", ")

extension Invocation {
    fileprivate func rung() throws(OperationalError) -> Rung? {
        guard let text = arguments.value("legacy") else { return nil }
        guard let rung = Rung(rawValue: text) else {
            throw OperationalError(.usage, message: "--legacy `\(text)`: expected one of \(rungs)")
        }
        return rung
    }

    fileprivate static func userID(_ text: String, of name: String) throws(OperationalError) -> Int64 {
        guard text.utf8.allSatisfy(ASCII.isDigit), let number = Int64(text), number >= 1 else {
            throw OperationalError(.usage, message: "\(name) `\(text)`: expected a whole number from 1 on")
        }
        return number
    }

    fileprivate func newPassword() throws(OperationalError) -> Secret? {
        guard arguments.has("password-stdin") else { return nil }
        let secret = try PasswordEntry(run: self).readNew(asking: "")
        _ = try PasswordEntry.password(secret)
        return secret
    }
}

extension Account {
    /// For scripts: nothing of it is a secret.
    var json: JSONValue {
        [
            "app": .string(app.description), "account": .string(name.description), "number": .integer(number),
            "user_id": userID.map { .integer($0) } ?? .null, "state": .string(state.rawValue),
            "credential": .string(credential), "created": .integer(created),
        ]
    }

    /// With when it was verified, in whole Unix seconds; nil for an account that is not.
    func json(verified: Int64?) -> JSONValue {
        guard case .object(let members) = json else { return json }
        return .object(members + [("verified", verified.map { .integer($0) } ?? .null)])
    }

    /// How its owner signs in: `opaque`, a rung of the ladder, or `none` yet.
    var credential: String { registration != nil ? "opaque" : legacy?.rung.rawValue ?? "none" }
}

extension Command {
    static let accountList = Command(
        words: ["account", "list"], summary: "list an app's accounts",
        positionals: [Positional(name: "APP")],
        options: [
            .value("limit", placeholder: "N", meaning: "at most so many, 1 to 100000 (default: 1000)"),
            .value(
                "after", placeholder: "NUMBER",
                meaning: "those behind this number, which the list before ended with"), .data, .json,
        ],
        notes:
            "In the order in which they were made; removed ones too. An account whose row was altered in the "
            + "database has its number and the state `altered`. With --json, `next` is the number to go on "
            + "--after, or null."
    ) { (run) throws(OperationalError) in
        let app = try run.appName()
        let limit = try run.number("limit", in: 1...100_000) ?? 1000
        let after = try run.number("after", in: 0...Int.max) ?? 0
        // One more than is shown tells whether there are more.
        var accounts = try run.deployment().accounts(of: app, after: Int64(after), limit: limit + 1)
        let next = accounts.count > limit ? accounts[limit - 1].number : nil
        accounts = Array(accounts.prefix(limit))
        let verified = try run.verified(accounts, of: app)
        let json: JSONValue = [
            "app": .string(app.description),
            "accounts": .array(accounts.map { $0.json(verified: verified[$0.number]) }),
            "next": next.map { .integer($0) } ?? .null,
        ]
        try run.print(json) {
            if accounts.isEmpty { return "no accounts; `countersign account add \(app) NAME` makes one" }
            return Table.text(
                head: ["NAME", "STATE", "SIGNS IN BY", "USER ID", "SINCE", "VERIFIED"],
                rows: accounts.map { $0.cells(verified: verified[$0.number]) })
        }
        run.warn(of: accounts.compactMap(\.altered))
        if let next { run.console.note("there are more: --after \(next)") }
        return .success
    }
}

extension ListedRow<Account> {
    fileprivate var number: Int64 {
        switch self {
        case .row(let account): account.number
        case .altered(let row): row.account
        }
    }

    /// `verified` is in whole Unix seconds; nil for an account that is not.
    fileprivate func json(verified: Int64?) -> JSONValue {
        switch self {
        case .row(let account): account.json(verified: verified)
        case .altered(let row):
            [
                "app": .null, "account": .null, "number": .integer(row.account), "user_id": .null,
                "state": "altered", "credential": .null, "created": .null, "verified": .null,
            ]
        }
    }

    fileprivate func cells(verified: Int64?) -> [String] {
        switch self {
        case .row(let account):
            [
                account.name.description, account.state.rawValue, account.credential,
                account.userID.map(String.init) ?? "-", TimeText.text(account.created),
                verified.map { TimeText.text($0) } ?? "-",
            ]
        case .altered(let row): ["number \(row.account)", "altered", "-", "-", "-", "-"]
        }
    }
}

extension Invocation {
    /// When the accounts of a page were verified, by their numbers.
    fileprivate func verified(
        _ accounts: [ListedRow<Account>], of app: AppName
    ) throws(OperationalError) -> [Int64: Int64] {
        guard let first = accounts.first?.number, let last = accounts.last?.number else { return [:] }
        return try deployment().verificationTimes(of: app, numbered: first...last)
    }

    /// Says on standard error that a listing has altered rows, or lacks them.
    func warn(of altered: [AlteredRow]) {
        guard !altered.isEmpty else { return }
        console.note("altered rows: \(altered.count); `countersign audit verify` tells more")
    }

    /// A whole number given by name; nil where it is not given.
    func number(_ name: String, in range: ClosedRange<Int>) throws(OperationalError) -> Int? {
        guard let text = arguments.value(name) else { return nil }
        guard text.utf8.allSatisfy(ASCII.isDigit), let number = Int(text), range.contains(number) else {
            throw OperationalError(
                .usage, message: "--\(name) `\(text)`: expected a whole number from \(range.lowerBound) on")
        }
        return number
    }
}

extension Command {
    static let accountLock = stateChange(
        verb: "lock", summary: "refuse sign-ins to an account, and end its sessions",
        notes: "`countersign account unlock` takes it back; sessions that have ended stay so."
    ) { (deployment, name, app, now) throws(OperationalError) in
        try deployment.lockAccount(name, of: app, at: now)
    }

    static let accountUnlock = stateChange(verb: "unlock", summary: "let its owner sign in again") {
        (deployment, name, app, now) throws(OperationalError) in
        try deployment.unlockAccount(name, of: app, at: now)
        return []
    }

    static let accountRemove = stateChange(
        verb: "remove", summary: "drop an account's credentials for good, and end its sessions",
        notes:
            "The name stays taken: the backend identifies the former owner by it, and would mistake a new "
            + "owner for the former one."
    ) { (deployment, name, app, now) throws(OperationalError) in
        try deployment.removeAccount(name, of: app, at: now)
    }

    private static func stateChange(
        verb: String, summary: String, notes: String = "",
        change:
            @escaping @Sendable (Deployment, AccountName, AppName, Int64) throws(OperationalError) ->
            [SessionID]
    ) -> Command {
        Command(
            words: ["account", verb], summary: summary,
            positionals: [Positional(name: "APP"), Positional(name: "NAME")], options: [.data, .json],
            notes: notes
        ) { (run) throws(OperationalError) in
            let app = try run.appName()
            let name = try Invocation.accountName(run.required("NAME"))
            let deployment = try run.deployment()
            let ended = try change(deployment, name, app, run.now)
            let account = try deployment.account(name, of: app)
            let json: JSONValue = [
                "app": .string(app.description), "account": .string(name.description),
                "state": .string(account.state.rawValue),
                "ended_sessions": .strings(ended.map(\.description)),
            ]
            try run.print(json) {
                let sessions = ended.isEmpty ? "" : "; sessions ended: \(ended.count)"
                return "\(name) is \(account.state.rawValue)\(sessions)"
            }
            return .success
        }
    }
}

extension Command {
    static let accountUserID = Command(
        words: ["account", "user-id"], summary: "set or clear the backend's own number of a user",
        positionals: [
            Positional(name: "APP"), Positional(name: "NAME"), Positional(name: "ID"),
        ], options: [.data, .json],
        notes: """
            ID is the user's number in the backend, which it is then told as id:ID, or `none`: the backend \
            is then told
            name:NAME. The account's sessions end, because its clients were told the number before.
            """
    ) { (run) throws(OperationalError) in
        let app = try run.appName()
        let name = try Invocation.accountName(run.required("NAME"))
        let text = try run.required("ID")
        let userID = text == "none" ? nil : try Invocation.userID(text, of: "ID")
        let deployment = try run.deployment()
        let ended = try deployment.setUserID(userID, of: name, in: app, at: run.now)
        let json: JSONValue = [
            "app": .string(app.description), "account": .string(name.description),
            "user_id": userID.map { .integer($0) } ?? .null,
            "ended_sessions": .strings(ended.map(\.description)),
        ]
        try run.print(json) {
            let id = userID.map { "user id \($0)" } ?? "no user id"
            let sessions = ended.isEmpty ? "" : "; sessions ended: \(ended.count)"
            return "\(name) has \(id)\(sessions)"
        }
        return .success
    }
}

extension Command {
    static let accountReset = Command(
        words: ["account", "reset"], summary: "make a one-time code for a password that was forgotten",
        positionals: [Positional(name: "APP"), Positional(name: "NAME")],
        options: [
            .value(
                "valid", placeholder: "1h",
                meaning: "how long it is good: seconds, or 30m, 1h, at most 24h (default: 1h)"),
            .flag("if-verified", meaning: "fail if the account is not verified"),
            .flag("replace", meaning: "withdraw the account's other reset codes"), .data, .json,
        ],
        notes: """
            The code is printed once; only its hash is kept. Deliver it over a trusted channel: it suffices
            to set the password. The owner uses it with `countersign signup --reset-code-stdin`, or with
            your app. Until then the present password and the sessions remain valid; setting the new
            password ends the sessions. Earlier codes stay valid until then, up to \(CodePace.mostLive) at a
            time. After \(CodePace.mostLive) codes in a day, one an hour can be made. --replace withdraws the
            other codes, such as when a code was stolen, and makes one at any time.
            """
    ) { (run) throws(OperationalError) in
        let app = try run.appName()
        let name = try Invocation.accountName(run.required("NAME"))
        let lifetime = try run.validity() ?? ResetCode.lifetime
        let deployment = try run.deployment()
        if run.arguments.has("if-verified") { try deployment.requireVerified(name, of: app) }
        let (code, until) = try deployment.resetAccount(
            name, of: app, lifetime: lifetime,
            earlierCodes: run.arguments.has("replace") ? .withdrawn : .kept, at: run.now)
        let json: JSONValue = [
            "app": .string(app.description), "account": .string(name.description),
            "reset_code": .string(code.text),
            "until": .integer(until),
        ]
        try run.print(json) { "\(code.text)" }
        if !run.arguments.has("json") { run.console.note("valid for one use until \(TimeText.text(until))") }
        return .success
    }
}
