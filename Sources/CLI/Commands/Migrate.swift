import CountersignAuthority
import CountersignSQL
import CountersignServer
import CountersignWire

extension Command {
    static let migrate = Command(
        words: ["migrate"],
        summary: "bring the store to this version's schema, or move it from SQLite to PostgreSQL",
        positionals: [
            Positional(name: "FROM", presence: .optional), Positional(name: "TO", presence: .optional),
        ],
        options: [.flag("check", meaning: "tell what would be done, and change nothing"), .data, .json],
        notes: """
            Without FROM and TO, the deployment's store gets the schema of this version. An SQLite file is \
            copied first, beside it. On PostgreSQL, nodes of the version before go on under a migration that \
            is `expanding`, which a new node does by itself as it starts; one that is `contracting` is done \
            by this command alone, and refused while older nodes are live.

            FROM is the deployment's file, sqlite:PATH, and TO an empty database, postgres://…, as `--store` \
            names it. Stop the server first, and start it with `--store TO` afterwards. Every row keeps its \
            authentication tag, is compared with its copy, and is authenticated there. The database has \
            everything or nothing: after an interruption, run the command again. The keyed requests of \
            the log in the data folder become rows, and the log is removed. The file stays, marked as \
            moved, so that no server goes on with it by mistake. The data folder, with the master key, is \
            used as before.
            """
    ) { (run) throws(OperationalError) in
        let configuration = run.composition.configured(try run.configuration())
        if run.arguments.positional("FROM") == nil { return try run.migrateSchema(configuration) }
        let (from, to) = (try run.required("FROM"), try run.required("TO"))
        if !run.arguments.has("check") {
            try configuration.finishMove(from: from, to: to, environment: run.environment.variables)
        }
        let migration = try configuration.migration(
            from: from, to: to, environment: run.environment.variables)
        if run.arguments.has("check") {
            let outcome = try migration.preview()
            try run.print(outcome.json) { outcome.plan }
            return outcome.wasEmpty ? .success : .failed
        }
        let isShown = run.console.isErrorTerminal
        let outcome = try migration.run(now: run.now) { stage in
            guard isShown else { return }
            switch stage {
            case .copied(let rows, let total): run.console.replaceLine("\(rows) of \(total) rows copied")
            case .compared(let rows, let total): run.console.replaceLine("\(rows) of \(total) rows compared")
            }
        }
        if isShown { run.console.replaceLine("") }
        try run.print(outcome.json) { outcome.text }
        return .success
    }
}

extension StoreMove.Outcome {
    fileprivate var json: JSONValue {
        [
            "rows": .integer(rows), "keyed_requests": .integer(Int64(requests)), "was_empty": .bool(wasEmpty),
            "tables": .object(tables.map { (name: $0.name, value: .integer($0.rows)) }),
        ]
    }

    private var lines: [String] {
        tables.filter { $0.rows > 0 }.map { "  \($0.name): \($0.rows)" }
            + (requests > 0 ? ["  keyed requests of the log: \(requests)"] : [])
    }

    fileprivate var text: String {
        let title =
            wasEmpty
            ? "\(rows) rows moved and compared" : "\(rows) rows were there already, and are the same"
        return ([title] + lines + ["start the server with the new address as --store"]).joined(
            separator: "\n")
    }

    fileprivate var plan: String {
        guard wasEmpty else {
            return
                "the database is not empty; expected an empty one, or this deployment's after an interrupted "
                + "move: without --check its rows are compared"
        }
        return (["\(rows) rows would be moved"] + lines).joined(separator: "\n")
    }
}
