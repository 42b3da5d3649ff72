import CountersignAuthority
import CountersignWire

/// Compares the tables, indices, triggers and functions of a database with those that the migrations make:
/// they are data of the database, and another trigger could change what is written.
enum PostgreSQLSchema {
    /// What stands for the functions of the schema among the tables.
    private static let functions = "functions"

    /// A digest of everything that the catalogue says about each table of ours, and about our functions.
    /// `SchemaTests` shows the digests when a migration has changed them.
    static let expected: [String: String] = [
        "account": "15871618951202f3",
        "account_code": "ff9d7e1706c34838",
        "account_verification": "852f4f862a12c9f7",
        "app": "a13626c09a557c9d",
        "app_setting": "88f694a5336c9cf5",
        "audit": "ebc73ed69fa48f8c",
        "erased_name": "b0ac02a257047ca8",
        "functions": "1f5a17ed073ef2a9",
        "generation": "ac1ffe3791571732",
        "idempotent_request": "d6728ad967c3b95f",
        "idempotent_use": "6c4036fef563f394",
        "known_device": "5a6384ed8ab416c8",
        "layout": "d2e2320a8753a354",
        "login_limit": "822d758986f9d8df",
        "meta": "b68603c606667e57",
        "meter": "c627bf32df13f8a6",
        "node": "53012c5adda3f5dd",
        "pending_login": "36c6f6ea2c271470",
        "pending_login_count": "c19f1652f9884b97",
        "release": "509e8ca27d0ab97f",
        "release_rollout": "47d46ecb62475558",
        "release_setting": "2c6a0f873e47847c",
        "revision": "9f11d3f0ab5a1939",
        "row_digest": "27af59362f2f8782",
        "session": "c785df4655fee200",
        "session_change": "8d4aa2c4712664d6",
        "upload_ticket": "a4934a63e7276725",
        "webhook_account": "ae803285bbf51609",
        "webhook_delivery": "a96ea5811c642062",
        "webhook_dropped": "1881674d42c70109",
        "writing": "66853366d22f8b45",
    ]

    /// The schema may contain tables that are not ours. The query casts names to text, because PostgreSQL
    /// has another type for them. Since PostgreSQL 18, NOT NULL is also a constraint. The line of the
    /// column states it, unless the constraint is not valid.
    private static let query = """
        WITH ours AS (
            SELECT oid, relname, relkind, relrowsecurity, relpersistence FROM pg_class
            WHERE relnamespace = to_regnamespace('countersign') AND relkind IN ('r', 'p', 'v', 'm', 'f')
        ), lines (place, line) AS (
            SELECT relname::text, format('table %s %s %s', relkind, relrowsecurity, relpersistence) FROM ours
            UNION ALL
            SELECT relname, format('column %s %s %s %s %s',
                    attname, atttypid::regtype, attnotnull, attidentity,
                    (SELECT pg_get_expr(adbin, adrelid) FROM pg_attrdef
                        WHERE adrelid = attrelid AND adnum = attnum))
                FROM pg_attribute JOIN ours ON attrelid = ours.oid WHERE attnum > 0 AND NOT attisdropped
            UNION ALL
            SELECT relname, format('index %s %s', pg_get_indexdef(indexrelid), indisvalid)
                FROM pg_index JOIN ours ON indrelid = ours.oid
            UNION ALL
            SELECT relname, format('constraint %s %s %s', conname, pg_get_constraintdef(c.oid), convalidated)
                FROM pg_constraint AS c JOIN ours ON conrelid = ours.oid
                WHERE contype <> 'n' OR NOT convalidated
            UNION ALL
            SELECT relname, format('trigger %s %s', pg_get_triggerdef(t.oid), tgenabled)
                FROM pg_trigger AS t JOIN ours ON tgrelid = ours.oid WHERE NOT tgisinternal
            UNION ALL
            SELECT relname, format('internal trigger %s', tgenabled)
                FROM pg_trigger JOIN ours ON tgrelid = ours.oid WHERE tgisinternal AND tgenabled <> 'O'
            UNION ALL
            SELECT relname, format('rule %s', rulename)
                FROM pg_rewrite JOIN ours ON ev_class = ours.oid
            UNION ALL
            SELECT relname, format('child %s', inhrelid::regclass)
                FROM pg_inherits JOIN ours ON inhparent = ours.oid
            UNION ALL
            SELECT 'functions', format('%s(%s) %s %s %s', proname, pg_get_function_identity_arguments(oid),
                    provolatile, prosecdef, prosrc)
                FROM pg_proc WHERE pronamespace = to_regnamespace('countersign')
        )
        SELECT convert_to(place, 'UTF8'),
            substr(sha256(convert_to(string_agg(line, E'\\n' ORDER BY line COLLATE "C"), 'UTF8')), 1, 8)
        FROM lines GROUP BY place
        """

    /// The digests of a database's tables, by name.
    static func digests(in database: Database) throws(OperationalError) -> [String: String] {
        let rows = try database.rows(query) { ($0.text(0), Hex.encode($0.blob(1).span)) }
        return Dictionary(uniqueKeysWithValues: rows)
    }

    /// How a database differs from the digests that are expected of it, in the order of the tables' names.
    static func differences(
        from expected: [String: String], in database: Database
    ) throws(OperationalError) -> [SchemaDifference] {
        let found = try digests(in: database)
        return expected.sorted { $0.key < $1.key }.compactMap { name, digest in
            guard found[name] != digest else { return nil }
            let what = found[name] == nil ? "missing" : "other than the migrations make them"
            let parts = name == functions ? "the functions" : "the columns, indices, constraints or triggers"
            return SchemaDifference(table: name, text: "\(parts) are \(what)")
        }
    }
}
