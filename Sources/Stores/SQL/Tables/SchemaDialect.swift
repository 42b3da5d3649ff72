/// What each kind of database writes differently in the definition of a table that both have. The files
/// beside this one define these tables by subject; `SQLiteTables` and `PostgreSQLTables` add what one kind
/// alone has.
package struct SchemaDialect: Sendable {
    package let integer: String
    package let text: String
    package let bytes: String
    /// A primary key that the database assigns.
    let identity: String
    /// The same, and the number of a deleted row is not assigned again.
    let lastingIdentity: String
    /// The key of a table that has a unique constraint instead; in SQLite each row has one.
    let rowID: String
    /// The end of an index by the order of a table's rows, which SQLite adds to each index.
    let byNumber: String
    /// The byte that begins a value sealed under a deployment's first master key.
    let firstSlot: String

    // MARK: The ends of tables

    package let rows: String
    /// The rows are stored in the primary key, where the database can.
    let rowsByKey: String
    /// One row that often changes in place.
    let counter: String

    /// A table's rows have no other columns and types than it declares: `STRICT`.
    static let sqlite = SchemaDialect(
        integer: "INTEGER", text: "TEXT", bytes: "BLOB", identity: "INTEGER PRIMARY KEY",
        lastingIdentity: "INTEGER PRIMARY KEY AUTOINCREMENT", rowID: "", byNumber: "", firstSlot: "x'01'",
        rows: " STRICT", rowsByKey: " STRICT, WITHOUT ROWID", counter: " STRICT")

    /// Texts are `utf8`, a domain over `bytea`: they may contain any byte, and are ordered by their bytes, as
    /// in SQLite.
    static let postgreSQL = SchemaDialect(
        integer: "bigint", text: "utf8", bytes: "bytea",
        identity: "bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY",
        lastingIdentity: "bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY",
        rowID: "rowid bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY, ", byNumber: ", number",
        firstSlot: "'\\x01'", rows: "", rowsByKey: "", counter: " WITH (fillfactor = 10)")

    /// The tables that both kinds have, each after those that it refers to.
    var tables: String { [deployment, apps, accounts, sessions, keyedRequests].joined(separator: "\n") }
}
