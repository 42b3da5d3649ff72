import CountersignAuthority
import CountersignSQL
import CountersignWire

/// The move of a deployment from its SQLite file to a PostgreSQL database.
package struct StoreMigration {
    private let deployment: Deployment
    private let move: StoreMove
    private let source: String
    /// Opens the deployment where it is afterwards.
    private let reopen: () throws(OperationalError) -> Deployment

    /// What a move would do. Changes nothing.
    package func preview() throws(OperationalError) -> StoreMove.Outcome {
        try move.preview(including: deployment.requestLog())
    }

    /// Moves the rows and the keyed requests of the log. Throws if a server runs. `now` is in whole Unix
    /// seconds.
    package func run(now: Int64, progress: (StoreMove.Stage) -> Void) throws(OperationalError)
        -> StoreMove.Outcome
    {
        try deployment.folder.withoutServer(
            refusal: "migrate: a server runs on this data folder; stop it first"
        ) { () throws(OperationalError) in
            let log = try deployment.requestLog()
            let outcome = try move.run(now: now, including: log, progress: progress)
            // The file is marked as moved: no server uses the log any more.
            if log != nil { try RequestLog.remove(in: deployment.folder) }
            let moved = try reopen()
            let draft = moved.auditDraft(
                for: .storeMove, on: .deployment,
                details: [("from", .string(source)), ("rows", .integer(outcome.rows))])
            try moved.store.set(.movedFrom, to: Array("\(source) \(now)".utf8), recording: draft)
            return outcome
        }
    }

    fileprivate init(
        _ deployment: Deployment, from source: String, by move: StoreMove,
        reopen: @escaping () throws(OperationalError) -> Deployment
    ) {
        self.deployment = deployment
        self.move = move
        self.source = source
        self.reopen = reopen
    }
}

extension Configuration {
    /// Opens the deployment in `source` to move it to `target`; both are as `--store` names them.
    package func migration(
        from source: String, to target: String, environment: [String: String]
    ) throws(OperationalError) -> StoreMigration {
        guard let from = StoreLocation(text: source), let to = StoreLocation(text: target),
            from.isFile, !to.isFile
        else {
            throw OperationalError(
                .usage,
                message: "migrate: expected sqlite:PATH, then the address to move to: \(StoreLocation.forms)")
        }
        var (here, there) = (self, self)
        (here.store, there.store) = (from, to)
        let moved = there
        try here.removeLog(movedTo: to)
        let deployment = try here.openDeployment(absence: .fail, environment: environment)
        guard let move = from.move(to: to, authenticatingBy: deployment.rows) else {
            throw OperationalError(.usage, message: "migrate: expected a file and a database")
        }
        return StoreMigration(deployment, from: from.text, by: move) { () throws(OperationalError) in
            try moved.openDeployment(absence: .fail, environment: environment)
        }
    }

    /// Finishes a move that was killed between marking the file as moved and removing the log, whose requests
    /// the database has.
    private func removeLog(movedTo place: StoreLocation) throws(OperationalError) {
        let folder = try DataFolder(data, absence: .fail)
        guard try RequestLog.exists(in: folder) else { return }
        let file = store.open(acknowledging: .followed)
        defer { file.close() }
        let mark = try file.value(of: .movedTo).map { String(decoding: $0, as: UTF8.self) }
        guard let mark, mark.split(separator: " ").first.map(String.init) == place.text else { return }
        try folder.withoutServer(
            refusal: "migrate: a server runs on this data folder; stop it first"
        ) { () throws(OperationalError) in try RequestLog.remove(in: folder) }
    }
}
