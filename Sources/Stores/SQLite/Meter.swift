import CountersignAuthority
import CountersignWire

extension SQLiteStore {
    package func add(_ entries: [MeterEntry]) throws(Fault) {
        try write { (database) throws(Fault) in
            for entry in entries {
                let subject = entry.subject
                try database.run(
                    """
                    INSERT INTO meter (day, app, key_id, scheme, outcome, count, last_seen) VALUES (?, ?, ?, ?, ?, ?, ?)
                    ON CONFLICT DO UPDATE SET
                        count = count + excluded.count, last_seen = max(last_seen, excluded.last_seen)
                    """,
                    .integer(entry.day), .text(subject.app), .text(subject.release), .text(subject.scheme),
                    .text(subject.outcome.name), .integer(entry.count), .integer(entry.lastSeen))
            }
        }
    }

    package func meter(since day: Int64) throws(Fault) -> [MeterEntry] {
        try read(whenEmpty: []) { (database) throws(Fault) in
            try database.rows(
                """
                SELECT day, app, key_id, scheme, outcome, count, last_seen FROM meter WHERE day >= ?
                ORDER BY day, app, key_id, scheme, outcome
                """, .integer(day)
            ) { (row) throws(Fault) in
                guard let outcome = MeterOutcome(name: row.text(4)) else {
                    throw Fault(.unreachable, "\(database.path): meter: a row that this build cannot read")
                }
                return MeterEntry(
                    subject: MeterEntry.Subject(
                        app: row.text(1), release: row.text(2), scheme: row.text(3), outcome: outcome),
                    day: row.integer(0), count: row.integer(5), lastSeen: row.integer(6))
            }
        }
    }

    package func forgetMeter(before day: Int64) throws(Fault) {
        try write { (database) throws(Fault) -> Void in
            try database.run("DELETE FROM meter WHERE day < ?", .integer(day))
        }
    }
}
