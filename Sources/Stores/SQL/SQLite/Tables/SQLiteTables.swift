/// The schema of a file: the tables of ``SchemaDialect``, and SQLite's triggers.
enum SQLiteTables {
    /// Tables, indices, first rows, and the triggers that only keep other programs from mistakes.
    static let base = SchemaDialect.sqlite.tables + "\n" + auditTriggers

    static let triggers = [forgottenSession] + usageTriggers + sealingTriggers

    /// They prevent accidental changes; the chain of tags detects deliberate ones.
    private static let auditTriggers = """
        CREATE TRIGGER audit_is_not_altered BEFORE UPDATE ON audit
        BEGIN SELECT RAISE(ABORT, 'the audit log is only added to'); END;
        CREATE TRIGGER audit_is_not_cut BEFORE DELETE ON audit
        BEGIN SELECT RAISE(ABORT, 'the audit log is only added to'); END;
        """

    /// Deletes the tickets of a session with it, so that none remains for a session that is gone.
    private static let forgottenSession = """
        CREATE TRIGGER upload_ticket_of_forgotten_session AFTER DELETE ON session BEGIN
            DELETE FROM upload_ticket WHERE session = OLD.id;
        END
        """

    /// Keep the usage of keyed requests.
    private static var usageTriggers: [String] {
        func size(_ row: String) -> String {
            "coalesce(length(\(row).fields), 0) + coalesce(length(\(row).body), 0)"
        }
        func kind(_ row: String) -> String { "substr(\(row).scope, 1, instr(\(row).scope, ' ') - 1)" }
        func owners(_ row: String) -> String { "(\(row).scope, \(kind(row)), \(row).network)" }
        return [
            """
            CREATE TRIGGER idempotent_request_begun AFTER INSERT ON idempotent_request BEGIN
                INSERT INTO idempotent_use SELECT owner, 1, \(size("NEW")) FROM (
                    SELECT NEW.scope AS owner UNION ALL SELECT \(kind("NEW")) UNION ALL SELECT NEW.network
                ) WHERE owner IS NOT NULL
                ON CONFLICT DO UPDATE SET keys = keys + 1, bytes = bytes + excluded.bytes;
            END
            """,
            """
            CREATE TRIGGER idempotent_request_finished AFTER UPDATE OF fields, body ON idempotent_request
            BEGIN
                UPDATE idempotent_use SET bytes = bytes + \(size("NEW")) - (\(size("OLD")))
                WHERE owner IN \(owners("NEW"));
            END
            """,
            """
            CREATE TRIGGER idempotent_request_forgotten AFTER DELETE ON idempotent_request BEGIN
                UPDATE idempotent_use SET keys = keys - 1, bytes = bytes - (\(size("OLD")))
                WHERE owner IN \(owners("OLD"));
                DELETE FROM idempotent_use WHERE owner IN (OLD.scope, OLD.network) AND keys = 0;
            END
            """,
        ]
    }
}
