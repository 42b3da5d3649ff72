import CountersignAuthority
import CountersignWire

extension SQLStore {
    /// Makes the changes of `body` and records them, or neither. If `body` changes nothing, nothing is
    /// recorded.
    func change<Outcome: StoreOutcome>(
        recording draft: AuditDraft, body: (Database) throws(OperationalError) -> Outcome
    ) throws(OperationalError) -> Outcome {
        try change { (database) throws(OperationalError) in
            try SQLStore.record(draft, in: database, body: body)
        }
    }

    /// The same for data that does not affect the gate's release keys: the revision stays.
    func write<Outcome: StoreOutcome>(
        recording draft: AuditDraft, body: (Database) throws(OperationalError) -> Outcome
    ) throws(OperationalError) -> Outcome {
        try write { (database) throws(OperationalError) in
            try SQLStore.record(draft, in: database, body: body)
        }
    }

    private static func record<Outcome: StoreOutcome>(
        _ draft: AuditDraft, in database: Database, body: (Database) throws(OperationalError) -> Outcome
    ) throws(OperationalError) -> Outcome {
        let outcome = try body(database)
        if outcome.didChange { try add(draft, to: database) }
        return outcome
    }

    static func add(_ draft: AuditDraft, to database: Database) throws(OperationalError) {
        let sealed = try value(of: .auditHead, in: database)
        let (row, head) = try draft.row(after: sealed) { (name, app) throws(OperationalError) in
            try pseudonym(of: name, in: app, database: database)
        }
        try add(row, head: head, to: database)
        if let notice = draft.notice { try tell(notice, in: database) }
    }

    static func add(_ row: AuditRow, head: [UInt8], to database: Database) throws(OperationalError) {
        try database.recorder.noteRecord(in: database)
        try database.run(
            "INSERT INTO audit (number, record, tag) VALUES (?, ?, ?)",
            binding: .integer(row.number), .text(String(decoding: row.record, as: UTF8.self)), .blob(row.tag))
        try set(.auditHead, to: head, in: database)
    }

    package func auditRows(after number: Int64, limit: Int) throws(OperationalError) -> [AuditRow] {
        try read(whenEmpty: []) { (database) throws(OperationalError) in
            try SQLStore.auditRows(after: number, limit: limit, in: database)
        }
    }

    static func auditRows(
        after number: Int64, limit: Int, in database: Database
    ) throws(OperationalError) -> [AuditRow] {
        try database.rows(
            "SELECT number, record, tag FROM audit WHERE number > ? ORDER BY number LIMIT ?",
            binding: .integer(number), .integer(Int64(limit))
        ) {
            // The text's raw bytes: decoding them as text would repair, and so hide, an alteration.
            AuditRow(number: $0.integer(0), record: $0.blob(1), tag: $0.blob(2))
        }
    }

    package func auditEnd() throws(OperationalError) -> (head: [UInt8]?, last: Int64) {
        try read(whenEmpty: (nil, 0)) { (database) throws(OperationalError) in
            (
                try SQLStore.value(of: .auditHead, in: database),
                try database.integer("SELECT max(number) FROM audit") ?? 0
            )
        }
    }
}

extension SQLStore {
    package func value(of name: MetaName) throws(OperationalError) -> [UInt8]? {
        try read(whenEmpty: nil) { (database) throws(OperationalError) in
            // All of them, because a missing value would be made anew.
            if AuthenticatedTable.meta.names.contains(name.rawValue) {
                try SQLStore.requireAuthentic(.meta, in: database)
            }
            return try SQLStore.value(of: name, in: database)
        }
    }

    package func set(_ name: MetaName, to value: [UInt8]) throws(OperationalError) {
        try change { (database) throws(OperationalError) -> Void in
            try SQLStore.set(name, to: value, in: database)
        }
    }

    package func set(_ name: MetaName, to value: [UInt8], recording draft: AuditDraft)
        throws(OperationalError)
    {
        try change { (database) throws(OperationalError) -> Void in
            try SQLStore.set(name, to: value, in: database)
            try SQLStore.add(draft, to: database)
        }
    }

    package func exchange(
        _ name: MetaName, from old: [UInt8]?, to new: [UInt8], with others: [(name: MetaName, value: [UInt8])]
    ) throws(OperationalError) -> [UInt8] {
        try change { (database) throws(OperationalError) in
            let current = try SQLStore.value(of: name, in: database)
            if let current, current != old { return current }
            try SQLStore.set(name, to: new, in: database)
            for other in others { try SQLStore.set(other.name, to: other.value, in: database) }
            return new
        }
    }

    package func exchange(
        _ name: MetaName, from old: [UInt8], to new: [UInt8], recording draft: AuditDraft
    ) throws(OperationalError) -> ChangeOutcome {
        try change(recording: draft) { (database) throws(OperationalError) in
            guard try SQLStore.value(of: name, in: database) == old else { return .missing }
            try SQLStore.set(name, to: new, in: database)
            return .yes
        }
    }

    package func setIfAbsent(_ name: MetaName, to value: [UInt8]) throws(OperationalError) -> [UInt8] {
        try change { (database) throws(OperationalError) in
            if AuthenticatedTable.meta.names.contains(name.rawValue) {
                try SQLStore.requireAuthentic(.meta, in: database)
            }
            try database.run(
                "INSERT INTO meta (name, value) VALUES (?, ?) ON CONFLICT DO NOTHING",
                binding: .text(name.rawValue), .blob(value))
            return try SQLStore.value(of: name, in: database) ?? value
        }
    }

    package func remove(_ name: MetaName) throws(OperationalError) {
        try change { (database) throws(OperationalError) -> Void in
            try database.run("DELETE FROM meta WHERE name = ?", binding: .text(name.rawValue))
        }
    }

    static func set(_ name: MetaName, to value: [UInt8], in database: Database) throws(OperationalError) {
        try database.run(
            """
            INSERT INTO meta (name, value) VALUES (?, ?)
            ON CONFLICT (name) DO UPDATE SET value = excluded.value
            """,
            binding: .text(name.rawValue), .blob(value))
    }

    static func value(of name: MetaName, in database: Database) throws(OperationalError) -> [UInt8]? {
        try database.rows("SELECT value FROM meta WHERE name = ?", binding: .text(name.rawValue)) {
            $0.blob(0)
        }.first
    }
}
