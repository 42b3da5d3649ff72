import CountersignAuthority
import CountersignSchemes
import CountersignWire

extension SQLiteStore {
    package func change(_ release: KeyID, _ changes: [(name: String, text: String?)]) throws(Fault) -> Changed {
        let id = SQLValue.text(release.description)
        return try change { (database) throws(Fault) in
            guard try database.integer("SELECT 1 FROM release WHERE key_id = ?", id) != nil else { return .missing }
            for (name, text) in changes { try SQLiteStore.set(name, text, of: release, in: database) }
            return .yes
        }
    }

    static func set(_ name: String, _ text: String?, of release: KeyID, in database: Database) throws(Fault) {
        let id = SQLValue.text(release.description)
        guard let text else {
            try database.run("DELETE FROM release_setting WHERE key_id = ? AND name = ?", id, .text(name))
            return
        }
        try database.run(
            """
            INSERT INTO release_setting (key_id, name, text) VALUES (?, ?, ?)
            ON CONFLICT (key_id, name) DO UPDATE SET text = excluded.text
            """, id, .text(name), .text(text))
    }

    package func insertNext(_ sealedNextSecret: [UInt8], of release: KeyID) throws(Fault) -> Inserted {
        try change { (database) throws(Fault) in
            let changed = try database.run(
                "UPDATE release SET sealed_next_secret = ? WHERE key_id = ? AND sealed_next_secret IS NULL",
                .blob(sealedNextSecret), .text(release.description))
            guard changed == 1 else { return .taken }
            try SQLiteStore.forgetEarlierNextKeys(of: release, in: database)
            return .yes
        }
    }

    /// What came under an earlier next key counts with the current one's from now on, so that the share of the next key
    /// begins at nothing.
    private static func forgetEarlierNextKeys(of release: KeyID, in database: Database) throws(Fault) {
        let id = SQLValue.text(release.description)
        let next = SQLValue.text(MeterOutcome.acceptedUnderNextKey.name)
        try database.run(
            """
            INSERT INTO meter (day, app, key_id, scheme, outcome, count, last_seen)
            SELECT day, app, key_id, scheme, ?, count, last_seen FROM meter WHERE key_id = ? AND outcome = ?
            ON CONFLICT DO UPDATE SET
                count = count + excluded.count, last_seen = max(last_seen, excluded.last_seen)
            """, .text(MeterOutcome.accepted.name), id, next)
        try database.run("DELETE FROM meter WHERE key_id = ? AND outcome = ?", id, next)
    }

    package func promote(
        _ sealedNextSecret: [UInt8], as sealedSecret: [UInt8], of release: KeyID
    ) throws(Fault) -> Changed {
        try change { (database) throws(Fault) in
            let changed = try database.run(
                """
                UPDATE release SET sealed_secret = ?, sealed_next_secret = NULL
                WHERE key_id = ? AND sealed_next_secret = ?
                """, .blob(sealedSecret), .text(release.description), .blob(sealedNextSecret))
            return changed == 1 ? .yes : .missing
        }
    }

    package func removeNext(of release: KeyID) throws(Fault) -> Changed {
        try change { (database) throws(Fault) in
            let changed = try database.run(
                "UPDATE release SET sealed_next_secret = NULL WHERE key_id = ? AND sealed_next_secret IS NOT NULL",
                .text(release.description))
            return changed == 1 ? .yes : .missing
        }
    }
}
