import Countersign
import CountersignClient
import CountersignWire

extension Command {
    static let password = Command(
        words: ["password"], summary: "change your password",
        options: [
            ClientDesk.profileOption,
            .flag("password-stdin", "read the password and the new one from standard input, a line each"), .json,
        ],
        notes: "Both stay on this machine. Your other sessions end; this one goes on."
    ) { (run) throws(Fault) in
        let desk = try ClientDesk(run)
        guard let login = try desk.login() else { throw ClientDesk.fault(.notSignedIn, desk.name, desk.origin) }
        let texts = try PasswordEntry(run: run).readChange()
        let (old, new) = (try PasswordEntry.text(texts.old), try PasswordEntry.text(texts.new))
        try desk.perform { (client) throws(CountersignError) in try await client.changePassword(from: old, to: new) }
        try run.print(["account": .string(login.account.description)]) {
            "the password of \(login.account) is changed; other sessions have ended"
        }
        return .success
    }
}
