import CountersignWire

/// The tables and indices that the migrations make, compared with those of a file.
///
/// The schema is data of the file: a constraint with `ON CONFLICT IGNORE` turns a change into nothing,
/// without an error, and an index without some rows hides them. Triggers and views are not compared: those of
/// a file do not run (``RowRecorder/start(by:on:)``). Other tables may be there.
enum SQLiteSchema {
    private struct Entry: Equatable {
        let type: String
        let table: String
        /// Empty for an index that a constraint makes.
        let sql: String
    }

    private struct Catalogue {
        var entries: [String: Entry] = [:]
        /// The names of each table's indices, as SQLite maintains them, whatever the entries call their
        /// table.
        var indices: [String: Set<String>] = [:]

        init(of database: Database) throws(OperationalError) {
            _ = try database.rows(
                "SELECT name, type, tbl_name, sql FROM sqlite_schema WHERE type IN ('table', 'index')"
            ) {
                entries[$0.text(0)] = Entry(
                    type: $0.text(1), table: $0.text(2), sql: $0.isNull(3) ? "" : $0.text(3))
            }
            for (name, entry) in entries where entry.type == "table" {
                indices[name] = Set(
                    try database.rows("SELECT name FROM pragma_index_list(?)", binding: .text(name)) {
                        $0.text(0)
                    })
            }
        }

        /// What the migrations make of an empty file.
        init(madeBy layout: StoreLayout) throws(OperationalError) {
            let database = try Database(path: ":memory:")
            try layout.make(in: database)
            try self.init(of: database)
        }
    }

    /// That of this build's layout; nil if its migrations cannot be run.
    private static let current = try? Catalogue(madeBy: .current)

    /// The differences of a file with all migrations of `layout`, in the order of the tables' names.
    static func differences(
        from layout: StoreLayout, in database: Database
    ) throws(OperationalError) -> [SchemaDifference] {
        guard let expected = layout == .current ? current : try Catalogue(madeBy: layout) else {
            throw OperationalError(.failed, message: "SQLite: cannot build the schema in memory")
        }
        let found = try Catalogue(of: database)
        var differences: [SchemaDifference] = []
        for (name, entry) in expected.entries.sorted(by: { $0.key < $1.key }) {
            let actual = found.entries[name]
            guard actual != entry else { continue }
            let fault = actual == nil ? "is missing" : "was rebuilt: its definition is another"
            differences.append(
                SchemaDifference(table: entry.table, text: "the \(entry.type) \(name) \(fault)"))
        }
        for (table, names) in expected.indices.sorted(by: { $0.key < $1.key }) {
            for name in (found.indices[table] ?? []).subtracting(names).sorted() {
                differences.append(
                    SchemaDifference(
                        table: table, text: "the index \(name) was added: drop it if it is yours"))
            }
        }
        return differences
    }
}
