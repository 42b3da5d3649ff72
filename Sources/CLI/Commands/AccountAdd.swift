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
            .value("user-id", "N", "the backend's own number of the user, which it is told in place of the name"),
            .data, .json,
        ],
        notes: """
            With --password-stdin the password goes through this command, so whoever runs it has seen it; what is kept is what a
            sign-up from a device would have left. Better without: `countersign account reset APP NAME` prints a one-time code
            with which its owner sets a password that nobody else sees.
            """
    ) { (run) throws(Fault) in
        let app = try run.appName()
        let name = try Invocation.accountName(run.required("NAME"))
        let userID = try run.userID()
        let password = try run.newPassword()
        let account = try run.deployment().addAccount(name, of: app, password: password, userID: userID, at: run.now)
        try run.print(account.json) {
            let hint = "`countersign account reset \(app) \(name)` gives its owner a code to set a password with"
            return password == nil ? "added \(name), without a password; \(hint)" : "added \(name)"
        }
        return .success
    }
}

extension Invocation {
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
