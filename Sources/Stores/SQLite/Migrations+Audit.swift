extension Migrations {
    /// The audit log. The triggers keep a mistake from changing it; who means to change it is found by the chain of tags.
    static let m003 = """
        CREATE TABLE audit (
            number INTEGER PRIMARY KEY,
            record TEXT NOT NULL,
            tag BLOB NOT NULL
        ) STRICT;

        CREATE TRIGGER audit_is_not_altered BEFORE UPDATE ON audit
        BEGIN SELECT RAISE(ABORT, 'the audit log is only added to'); END;

        CREATE TRIGGER audit_is_not_cut BEFORE DELETE ON audit
        BEGIN SELECT RAISE(ABORT, 'the audit log is only added to'); END;
        """
}
