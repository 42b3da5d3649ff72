import CountersignAuthority
import CountersignWire

extension Command {
    static let accountLock = changing(
        "lock", "let nobody sign in to an account, and end its sessions",
        notes: "`countersign account unlock` takes it back; sessions that have ended stay so."
    ) { (deployment, name, app, now) throws(Fault) in try deployment.lockAccount(name, of: app, at: now) }

    static let accountUnlock = changing("unlock", "let its owner sign in again") {
        (deployment, name, app, now) throws(Fault) in
        try deployment.unlockAccount(name, of: app, at: now)
        return []
    }

    static let accountRemove = changing(
        "remove", "drop an account's credentials for good, and end its sessions",
        notes:
            "The name stays taken: the backend knows somebody by it, and whoever got it next would be taken for them."
    ) { (deployment, name, app, now) throws(Fault) in try deployment.removeAccount(name, of: app, at: now) }

    private static func changing(
        _ verb: String, _ summary: String, notes: String = "",
        _ change: @escaping @Sendable (Deployment, AccountName, AppName, Int64) throws(Fault) -> [SessionID]
    ) -> Command {
        Command(
            words: ["account", verb], summary: summary,
            positionals: [Positional(name: "APP"), Positional(name: "NAME")], options: [.data, .json], notes: notes
        ) { (run) throws(Fault) in
            let app = try run.appName()
            let name = try Invocation.accountName(run.required("NAME"))
            let deployment = try run.deployment()
            let ended = try change(deployment, name, app, run.now)
            let account = try deployment.account(name, of: app)
            let json: JSONValue = [
                "app": .string(app.description), "account": .string(name.description),
                "state": .string(account.state.rawValue), "ended_sessions": .strings(ended.map(\.description)),
            ]
            try run.print(json) {
                let sessions = ended.isEmpty ? "" : "; sessions ended: \(ended.count)"
                return "\(name) is \(account.state.rawValue)\(sessions)"
            }
            return .success
        }
    }
}
