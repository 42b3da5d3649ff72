import CountersignAuthority

/// Tables and triggers by which gateways over one database learn of changes and of each other.
extension PostgreSQLTables {
    static let nodes = [generation, node]
    static let nodeTriggers = [notifications, generationTriggers, MetaName.generationTriggers]

    /// Counts the changes of what a node keeps in memory, apart from sessions, which have numbers.
    private static let generation = """
        CREATE TABLE generation (number bigint NOT NULL) WITH (fillfactor = 10);
        INSERT INTO generation VALUES (0);
        """

    /// A node, with its lease, the last change that it follows, the level of its build, what it says of its
    /// master key (`NodeMasterKey`), and the settings that it must have in common with the others
    /// (`SharedSettings`).
    private static let node = """
        CREATE TABLE node (
            id utf8 PRIMARY KEY,
            name utf8 NOT NULL,
            replay_guard utf8 NOT NULL,
            lease bigint NOT NULL CHECK (lease BETWEEN 1 AND 3600000),
            seen bigint NOT NULL,
            applied bigint NOT NULL,
            clock_offset bigint NOT NULL,
            level bigint NOT NULL DEFAULT 0,
            master_key utf8 NOT NULL DEFAULT '',
            settings utf8 NOT NULL DEFAULT '',
            refusal utf8 NOT NULL DEFAULT ''
        ) WITH (fillfactor = 50);
        """

    /// The notification is a hint: a node that misses it reads the numbers with its next lease.
    private static let notifications = """
        CREATE FUNCTION notify_nodes() RETURNS trigger LANGUAGE plpgsql AS $$
        BEGIN
            PERFORM pg_notify('countersign', '');
            RETURN NULL;
        END $$;
        CREATE TRIGGER session_change_notifies AFTER UPDATE ON session_change
            FOR EACH STATEMENT EXECUTE FUNCTION notify_nodes();
        CREATE TRIGGER generation_notifies AFTER UPDATE ON generation
            FOR EACH STATEMENT EXECUTE FUNCTION notify_nodes();
        """

    /// Of an account, nodes keep its name and user id with each session in use.
    private static let generationTriggers = """
        CREATE FUNCTION advance_generation() RETURNS trigger LANGUAGE plpgsql AS $$
        BEGIN
            UPDATE countersign.generation SET number = number + 1;
            RETURN NULL;
        END $$;
        CREATE TRIGGER revision_advances AFTER UPDATE ON revision
            FOR EACH STATEMENT EXECUTE FUNCTION advance_generation();
        CREATE TRIGGER account_update_advances AFTER UPDATE ON account FOR EACH ROW
            WHEN (OLD.name <> NEW.name OR OLD.state <> NEW.state OR OLD.user_id IS DISTINCT FROM NEW.user_id
                OR OLD.pseudonym IS DISTINCT FROM NEW.pseudonym)
            EXECUTE FUNCTION advance_generation();
        CREATE TRIGGER account_delete_advances AFTER DELETE ON account
            FOR EACH STATEMENT EXECUTE FUNCTION advance_generation();
        """
}

extension MetaName {
    /// Values that no node keeps in memory, or that change with each audit record.
    private static let unfollowed: [MetaName] = [.auditHead, .replayFile, .meterBegan, .writeCheck]

    /// Triggers on those that nodes keep in memory.
    fileprivate static var generationTriggers: String {
        let names = unfollowed.map { "'\($0.rawValue)'" }.joined(separator: ", ")
        func trigger(_ event: String, on row: String) -> String {
            """
            CREATE TRIGGER meta_\(event.lowercased())_advances AFTER \(event) ON meta FOR EACH ROW
                WHEN (\(row).name NOT IN (\(names))) EXECUTE FUNCTION advance_generation();
            """
        }
        return [trigger("INSERT", on: "NEW"), trigger("UPDATE", on: "NEW"), trigger("DELETE", on: "OLD")]
            .joined(separator: "\n")
    }
}
