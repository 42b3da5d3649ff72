#if SABOTAGE
    import CountersignAuthority
    import CountersignSQL

    /// The layouts of builds that do not exist yet: with the ordinary build, a test has two builds for a
    /// rolling upgrade. `SchemaTests` shows the digests when a migration has changed them.
    package enum LaterLayouts {
        /// One level more, whose migration changes a table that is in use.
        package static let expanded = PostgreSQLLayout.current.adding(
            """
            ALTER TABLE session ADD COLUMN planted bigint;
            CREATE TABLE planted (number bigint NOT NULL);
            INSERT INTO planted VALUES (1);
            """,
            named: "planted expansion", kind: .expanding(oldestLevel: PostgreSQLLayout.current.level),
            digests: ["session": "267f29fd2b05f5e8", "planted": "3f66fc188b35544b"])

        /// Two levels more, of which the second takes away what the first kept for earlier builds.
        package static let contracted = expanded.adding(
            "ALTER TABLE planted ADD COLUMN more bigint; ALTER TABLE session DROP COLUMN planted;",
            named: "planted contraction", kind: .contracting,
            digests: [
                "session": PostgreSQLLayout.current.digest(of: "session"), "planted": "346f40c102a6cef0",
            ])
    }
#endif
