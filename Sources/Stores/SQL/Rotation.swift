import CountersignAuthority
import CountersignGate
import CountersignSchemes
import CountersignWire

extension SQLStore {
    package func change(
        _ release: KeyID, applying changes: [(name: String, text: String?)], recording draft: AuditDraft
    ) throws(OperationalError) -> ChangeOutcome {
        let id = SQLValue.text(release.description)
        return try change(recording: draft) { (database) throws(OperationalError) in
            guard try database.integer("SELECT 1 FROM release WHERE key_id = ?", binding: id) != nil else {
                return .missing
            }
            for (name, text) in changes { try SQLStore.set(name, to: text, of: release, in: database) }
            return .yes
        }
    }

    static func set(_ name: String, to text: String?, of release: KeyID, in database: Database)
        throws(OperationalError)
    {
        let id = SQLValue.text(release.description)
        guard let text else {
            try database.run(
                "DELETE FROM release_setting WHERE key_id = ? AND name = ?", binding: id, .text(name))
            return
        }
        try database.run(
            """
            INSERT INTO release_setting (key_id, name, text) VALUES (?, ?, ?)
            ON CONFLICT (key_id, name) DO UPDATE SET text = excluded.text
            """, binding: id, .text(name), .text(text))
    }

    package func insertNext(
        _ sealedNextSecret: [UInt8], of release: KeyID, recording draft: AuditDraft
    ) throws(OperationalError) -> InsertOutcome {
        try change(recording: draft) { (database) throws(OperationalError) in
            let changed = try database.run(
                "UPDATE release SET sealed_next_secret = ? WHERE key_id = ? AND sealed_next_secret IS NULL",
                binding: .blob(sealedNextSecret), .text(release.description))
            guard changed == 1 else { return .taken }
            try SQLStore.forgetEarlierNextKeys(of: release, in: database)
            return .yes
        }
    }

    /// Adds the counts of an earlier next key to those of the current key, so that the new next key's count
    /// begins at zero.
    private static func forgetEarlierNextKeys(of release: KeyID, in database: Database)
        throws(OperationalError)
    {
        let id = SQLValue.text(release.description)
        let next = SQLValue.text(MeterOutcome.acceptedUnderNextKey.name)
        try database.run(
            """
            INSERT INTO meter (day, app, key_id, scheme, outcome, count, last_seen)
            SELECT day, app, key_id, scheme, ?, count, last_seen FROM meter WHERE key_id = ? AND outcome = ?
            ON CONFLICT (day, app, key_id, scheme, outcome) DO UPDATE SET
                count = meter.count + excluded.count,
                last_seen = max(meter.last_seen, excluded.last_seen)
            """, binding: .text(MeterOutcome.accepted.name), id, next)
        try database.run("DELETE FROM meter WHERE key_id = ? AND outcome = ?", binding: id, next)
    }

    package func promote(
        _ sealedNextSecret: [UInt8], as sealedSecret: [UInt8], of release: KeyID, recording draft: AuditDraft
    ) throws(OperationalError) -> ChangeOutcome {
        try change(recording: draft) { (database) throws(OperationalError) in
            let changed = try database.run(
                """
                UPDATE release SET sealed_secret = ?, sealed_next_secret = NULL
                WHERE key_id = ? AND sealed_next_secret = ?
                """, binding: .blob(sealedSecret), .text(release.description), .blob(sealedNextSecret))
            return changed == 1 ? .yes : .missing
        }
    }

    package func removeNext(of release: KeyID, recording draft: AuditDraft) throws(OperationalError)
        -> ChangeOutcome
    {
        try change(recording: draft) { (database) throws(OperationalError) in
            let changed = try database.run(
                """
                UPDATE release SET sealed_next_secret = NULL
                WHERE key_id = ? AND sealed_next_secret IS NOT NULL
                """,
                binding: .text(release.description))
            return changed == 1 ? .yes : .missing
        }
    }
}

extension SQLStore {
    package func add(_ entries: [MeterEntry]) throws(OperationalError) {
        try write { (database) throws(OperationalError) in
            for entry in entries {
                let subject = entry.subject
                try database.run(
                    """
                    INSERT INTO meter (day, app, key_id, scheme, outcome, count, last_seen)
                    VALUES (?, ?, ?, ?, ?, ?, ?)
                    ON CONFLICT (day, app, key_id, scheme, outcome) DO UPDATE SET
                        count = meter.count + excluded.count,
                        last_seen = max(meter.last_seen, excluded.last_seen)
                    """,
                    binding: .integer(entry.day), .text(subject.app), .text(subject.release),
                    .text(subject.scheme),
                    .text(subject.outcome.name), .integer(entry.count), .integer(entry.lastSeen))
            }
        }
    }

    package func meter(since day: Int64) throws(OperationalError) -> [MeterEntry] {
        try read(whenEmpty: []) { (database) throws(OperationalError) in
            try database.rows(
                """
                SELECT day, app, key_id, scheme, outcome, count, last_seen FROM meter WHERE day >= ?
                ORDER BY day, app, key_id, scheme, outcome
                """, binding: .integer(day)
            ) { (row) throws(OperationalError) in
                guard let outcome = MeterOutcome(name: row.text(4)) else {
                    throw OperationalError(
                        .unreachable, message: "\(database.path): meter: a row that this build cannot read")
                }
                return MeterEntry(
                    subject: MeterEntry.Subject(
                        app: row.text(1), release: row.text(2), scheme: row.text(3), outcome: outcome),
                    day: row.integer(0), count: row.integer(5), lastSeen: row.integer(6))
            }
        }
    }

    package func forgetMeter(before time: TrustedTime) throws(OperationalError) {
        try write { (database) throws(OperationalError) -> Void in
            try database.run("DELETE FROM meter WHERE day < ?", binding: .integer(time.seconds / 86_400))
        }
    }
}
