import Countersign
import CountersignClient
import CountersignSeal
import CountersignWire

extension Command {
    static let signUp = Command(
        words: ["signup"], summary: "make an account, or set a forgotten password by a code",
        options: [
            ProfileSession.profileOption, .account, PasswordEntry.option,
            .flag(
                "reset-code-stdin",
                meaning:
                    "read the one-time code of `account reset` from standard input, a line "
                    + "before the password"
            ),
            .json,
        ],
        notes: """
            The password stays on this machine: the server gets a record that only it can use to check one, \
            and cannot read one
            from. The record is sealed to the server, so the profile must know it: by --authority-key, by \
            --pin or by --ca.

            With --reset-code-stdin the password of an account that is there is set anew, and all of its \
            sessions end.
            """
    ) { (run) throws(OperationalError) in
        let session = try ProfileSession(run)
        let account = try run.account()
        let entry = PasswordEntry(run: run)
        var code: Secret?
        let text: Secret
        if run.arguments.has("reset-code-stdin") {
            let both = try entry.readAfterCode()
            (code, text) = (both.code, both.password)
        } else {
            text = try entry.readNew(asking: "new password: ")
        }
        let (name, password) = (account.description, try PasswordEntry.text(text))
        let resetCode = try code.map { (code) throws(OperationalError) in try PasswordEntry.text(code) }
        try session.perform { (client) throws(CountersignError) in
            if let resetCode {
                try await client.resetPassword(name, to: password, code: resetCode)
            } else {
                try await client.signUp(name, password)
            }
        }
        try run.print(["account": .string(account.description), "profile": .string(session.name)]) {
            let done = resetCode == nil ? "signed up as \(account)" : "the password of \(account) is set"
            return "\(done); `countersign login --profile \(session.name) --account \(account)` signs in"
        }
        return .success
    }
}

extension Option {
    static let account = value(
        "account", placeholder: "NAME", meaning: "whose account (asked for at a terminal)")
}

extension Invocation {
    /// The account's name in its one spelling.
    func account() throws(OperationalError) -> AccountName {
        if let text = arguments.value("account") { return try Invocation.accountName(text) }
        guard let text = try console.ask("account: ") else {
            throw OperationalError(.usage, message: "--account is missing")
        }
        return try Invocation.accountName(text)
    }

    static func accountName(_ text: String) throws(OperationalError) -> AccountName {
        do {
            return try AccountName(normalizing: text)
        } catch {
            throw OperationalError(.usage, message: "account `\(text)`: \(error)")
        }
    }
}

extension Command {
    static let password = Command(
        words: ["password"], summary: "change your password",
        options: [
            ProfileSession.profileOption,
            .flag(
                "password-stdin",
                meaning: "read the password and the new one from standard input, a line each"), .json,
        ],
        notes: "Both stay on this machine. Your other sessions end; this one goes on."
    ) { (run) throws(OperationalError) in
        let session = try ProfileSession(run)
        guard let login = try session.login() else {
            throw ProfileSession.operationalError(
                for: .notSignedIn, profile: session.name, origin: session.origin)
        }
        let texts = try PasswordEntry(run: run).readChange()
        let (old, new) = (try PasswordEntry.text(texts.old), try PasswordEntry.text(texts.new))
        try session.perform { (client) throws(CountersignError) in
            try await client.changePassword(from: old, to: new)
        }
        try run.print(["account": .string(login.account.description)]) {
            "the password of \(login.account) is changed; other sessions have ended"
        }
        return .success
    }
}
