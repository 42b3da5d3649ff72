import CountersignAuthority

/// The triggers that see the rows of several tables.
extension PostgreSQLTables {
    /// Refuse values that are sealed under the former master key (``SealedColumns``).
    static let sealingTriggers = [formerKey] + SealedColumns.all.map(\.triggers)

    /// Hand each row of an authenticated table that is written to the connection that writes it.
    static let handOverTriggers = AuthenticatedTable.all.map(\.handOverTriggers)

    private static let formerKey = """
        CREATE FUNCTION refuse_former_key() RETURNS trigger LANGUAGE plpgsql AS $$
        BEGIN
            RAISE EXCEPTION 'sealed under the former master key' USING ERRCODE = 'CS001';
        END $$;
        CREATE FUNCTION has_former_key(bytea) RETURNS boolean LANGUAGE sql STABLE AS
            'SELECT substr($1, 1, 1) IS DISTINCT FROM (SELECT value FROM countersign.meta \
        WHERE name = ''seal-slot'')';
        """
}

extension SealedColumns {
    /// The conditions have the shape in which PostgreSQL prints them, and which it reads back unchanged.
    /// After `pg_dump`, a `NOT IN` would be printed differently and so have another digest.
    fileprivate var triggers: String {
        func isNew(_ column: String) -> String {
            columns.map { "NEW.\(column) <> coalesce(OLD.\($0), '')" }.joined(separator: " AND ")
        }
        func isWrong(_ column: String) -> String {
            "octet_length(NEW.\(column)) > 0 AND has_former_key(NEW.\(column))"
        }
        let inserted = columns.map { "(\(isWrong($0)))" }.joined(separator: " OR ")
        let updated = columns.map { "(\(isNew($0)) AND \(isWrong($0)))" }.joined(separator: " OR ")
        return """
            CREATE TRIGGER \(table)_insert_is_sealed BEFORE INSERT ON \(table) FOR EACH ROW
                WHEN (\(condition) AND (\(inserted))) EXECUTE FUNCTION refuse_former_key();
            CREATE TRIGGER \(table)_update_is_sealed BEFORE UPDATE OF \(columns.joined(separator: ", "))
                ON \(table) FOR EACH ROW
                WHEN (\(condition) AND (\(updated))) EXECUTE FUNCTION refuse_former_key();
            """
    }
}

extension AuthenticatedTable {
    fileprivate var handOverTriggers: String {
        let (new, old) = (condition("NEW.").map { "WHEN (\($0))" }, condition("OLD.").map { "WHEN (\($0))" })
        func trigger(_ event: String, when condition: String?) -> String {
            let name = event.prefix { $0 != " " }.lowercased()
            return """
                CREATE TRIGGER row_\(name) AFTER \(event) ON \(self.name) FOR EACH ROW \(condition ?? "")
                    EXECUTE FUNCTION hand_over_\(self.name)();
                """
        }
        return """
            CREATE FUNCTION hand_over_\(name)() RETURNS trigger LANGUAGE plpgsql AS $$
            BEGIN
                IF to_regclass('pg_temp.row_change') IS NULL THEN
                    RAISE EXCEPTION 'rows of % are written by countersign alone', TG_TABLE_NAME;
                END IF;
                INSERT INTO pg_temp.row_change (old, new) VALUES (
                    CASE WHEN TG_OP <> 'INSERT' THEN \(taggedEncoding(of: "OLD.")) END,
                    CASE WHEN TG_OP <> 'DELETE' THEN \(taggedEncoding(of: "NEW.")) END);
                RETURN NULL;
            END $$;
            \(trigger("INSERT", when: new))
            \(trigger("UPDATE OF \(list())", when: new))
            \(trigger("DELETE", when: old))
            """
    }
}
