import CountersignAuthority
import CountersignSchemes
import CountersignSeal
import CountersignWire

extension Command {
    static let accountAdd = Command(
        words: ["account", "add"], summary: "make an account",
        positionals: [Positional(name: "APP"), Positional(name: "NAME")],
        options: [
            .flag("password-stdin", "read its password from standard input: whoever runs this sees it"),
            .value("legacy", "RUNG", "its clients send the password as old ones do: \(rungs)"),
            .value("user-id", "N", "the backend's own number of the user, which it is told in place of the name"),
            .data, .json,
        ],
        notes: """
            With --password-stdin the password goes through this command, so whoever runs it has seen it; what is kept is what a
            sign-up from a device would have left. Better without: `countersign account reset APP NAME` prints a one-time code
            with which its owner sets a password that nobody else sees.

            --legacy puts the account on a rung of the login ladder, by the app's legacy-salt and legacy-key, and needs the
            password. What the rung needs is kept wrapped. Such logins need the policy legacy-login.
            """
    ) { (run) throws(Fault) in
        let app = try run.appName()
        let name = try Invocation.accountName(run.required("NAME"))
        let userID = try run.userID()
        let password = try run.newPassword()
        let rung = try run.rung()
        let deployment = try run.deployment()
        let account: Account
        if let rung {
            guard let password else { throw Fault(.usage, "--legacy: expected --password-stdin beside it") }
            account = try deployment.addLegacyAccount(
                name, of: app, on: rung, password: password, userID: userID, at: run.now)
        } else {
            account = try deployment.addAccount(name, of: app, password: password, userID: userID, at: run.now)
        }
        try run.print(account.json) {
            let hint = "`countersign account reset \(app) \(name)` gives its owner a code to set a password with"
            if let rung, let id = account.userID { return "added \(name) on \(rung.rawValue), user id \(id)" }
            return password == nil ? "added \(name), without a password; \(hint)" : "added \(name)"
        }
        return .success
    }
}

/// As --legacy has them.
private let rungs = Rung.allCases.map(\.rawValue).joined(separator: ", ")

extension Invocation {
    fileprivate func rung() throws(Fault) -> Rung? {
        guard let text = arguments.value("legacy") else { return nil }
        guard let rung = Rung(rawValue: text) else {
            throw Fault(.usage, "--legacy `\(text)`: expected one of \(rungs)")
        }
        return rung
    }

    fileprivate func userID() throws(Fault) -> Int64? {
        guard let text = arguments.value("user-id") else { return nil }
        guard text.utf8.allSatisfy(ASCII.isDigit), let number = Int64(text), number >= 1 else {
            throw Fault(.usage, "--user-id `\(text)`: expected a whole number from 1 on")
        }
        return number
    }

    fileprivate func newPassword() throws(Fault) -> Secret? {
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

    /// How its owner signs in: `opaque`, a rung of the ladder, or `none` yet.
    var credential: String { registration != nil ? "opaque" : legacy?.rung.rawValue ?? "none" }
}
