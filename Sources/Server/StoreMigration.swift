import CountersignAuthority
import CountersignSQL
import CountersignWire

/// The move of a deployment from its SQLite file to a PostgreSQL database.
package struct StoreMigration {
    private let deployment: Deployment
    private let move: StoreMove
    fileprivate static let requestsTogether = 256
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
            // The file is marked as moved, so no server uses the log.
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
        let (from, to) = try Configuration.places(from: source, to: target)
        var (here, there) = (self, self)
        (here.store, there.store) = (from, to)
        let moved = there
        let deployment = try here.openDeployment(absence: .fail, environment: environment)
        guard let move = from.move(to: to, authenticatingBy: deployment.rows) else {
            throw OperationalError(.usage, message: "migrate: expected a file and a database")
        }
        return StoreMigration(deployment, from: from.text, by: move) { () throws(OperationalError) in
            try moved.openDeployment(absence: .fail, environment: environment)
        }
    }

    /// Finishes a move that was killed between marking the file as moved and removing the log. A program that
    /// can write to the file can also write the mark. The log is therefore removed only after its requests
    /// are in the database, which must open under this folder's master key, and only if the file or the
    /// database is the deployment's own store: a copy's mark does not concern this log.
    package func finishMove(
        from source: String, to target: String, environment: [String: String]
    ) throws(OperationalError) {
        let (from, to) = try Configuration.places(from: source, to: target)
        let folder = try DataFolder(data, absence: .fail)
        guard [from.text, to.text].contains(store.text), try RequestLog.exists(in: folder),
            try from.isMarked(asMovedTo: to)
        else { return }
        var there = self
        there.store = to
        let moved = there
        try folder.withoutServer(
            refusal: "migrate: a server runs on this data folder; stop it first"
        ) { () throws(OperationalError) in
            let deployment = try moved.openDeployment(absence: .fail, environment: environment)
            defer { deployment.store.close() }
            try deployment.requestLog()?.forEachRequest(together: StoreMigration.requestsTogether) {
                (requests) throws(OperationalError) in try deployment.store.adopt(requests)
            }
            try RequestLog.remove(in: folder)
        }
    }

    private static func places(
        from source: String, to target: String
    ) throws(OperationalError) -> (StoreLocation, StoreLocation) {
        guard let from = StoreLocation(text: source), let to = StoreLocation(text: target),
            from.isFile, !to.isFile
        else {
            throw OperationalError(
                .usage,
                message: "migrate: expected sqlite:PATH, then the address to move to: \(StoreLocation.forms)")
        }
        return (from, to)
    }
}

extension StoreLocation {
    fileprivate func isMarked(asMovedTo place: StoreLocation) throws(OperationalError) -> Bool {
        let file = open(acknowledging: .followed)
        defer { file.close() }
        let mark = try file.value(of: .movedTo).map { String(decoding: $0, as: UTF8.self) }
        return mark?.split(separator: " ").first.map(String.init) == place.text
    }
}
