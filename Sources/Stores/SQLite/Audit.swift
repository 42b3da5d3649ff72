import CountersignAuthority
import CountersignWire

extension SQLiteStore {
    /// What `body` changes and the record of it, or neither. Where it changes nothing, nothing is recorded.
    func change<Outcome: StoreOutcome>(
        recording draft: AuditDraft, _ body: (Database) throws(Fault) -> Outcome
    ) throws(Fault) -> Outcome {
        try change { (database) throws(Fault) in try SQLiteStore.recorded(draft, in: database, body) }
    }

    /// The same for what no release is judged by: the revision stays.
    func write<Outcome: StoreOutcome>(
        recording draft: AuditDraft, _ body: (Database) throws(Fault) -> Outcome
    ) throws(Fault) -> Outcome {
        try write { (database) throws(Fault) in try SQLiteStore.recorded(draft, in: database, body) }
    }

    private static func recorded<Outcome: StoreOutcome>(
        _ draft: AuditDraft, in database: Database, _ body: (Database) throws(Fault) -> Outcome
    ) throws(Fault) -> Outcome {
        let outcome = try body(database)
        if outcome.cameAbout { try add(draft, to: database) }
        return outcome
    }

    static func add(_ draft: AuditDraft, to database: Database) throws(Fault) {
        let (row, head) = try draft.placed(behind: value(of: .auditHead, in: database))
        try database.run(
            "INSERT INTO audit (number, record, tag) VALUES (?, ?, ?)",
            .integer(row.number), .text(String(decoding: row.record, as: UTF8.self)), .blob(row.tag))
        try set(.auditHead, to: head, in: database)
    }

    package func auditRows(after number: Int64, limit: Int) throws(Fault) -> [AuditRow] {
        try read(whenEmpty: []) { (database) throws(Fault) in
            try database.rows(
                "SELECT number, record, tag FROM audit WHERE number > ? ORDER BY number LIMIT ?",
                .integer(number), .integer(Int64(limit))
            ) {
                // The text's own bytes: to read them as text would mend what somebody broke in them.
                AuditRow(number: $0.integer(0), record: $0.blob(1), tag: $0.blob(2))
            }
        }
    }

    package func auditEnd() throws(Fault) -> (head: [UInt8]?, last: Int64) {
        try read(whenEmpty: (nil, 0)) { (database) throws(Fault) in
            (
                try SQLiteStore.value(of: .auditHead, in: database),
                try database.integer("SELECT max(number) FROM audit") ?? 0
            )
        }
    }
}
