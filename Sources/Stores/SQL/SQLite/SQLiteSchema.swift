import CountersignWire

/// How the schema of a store differs from the one that its layout makes.
struct SchemaDifference: Equatable {
    let table: String
    let text: String
}

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

    /// The entries by name, and the names of each table's indices.
    private struct Catalogue {
        var entries: [String: Entry] = [:]
        var indices: [String: Set<String>] = [:]

        init(of database: Database) throws(OperationalError) {
            let entries = try database.rows(
                "SELECT name, type, tbl_name, sql FROM sqlite_schema WHERE type IN ('table', 'index')"
            ) {
                ($0.text(0), Entry(type: $0.text(1), table: $0.text(2), sql: $0.isNull(3) ? "" : $0.text(3)))
            }
            for (name, entry) in entries { self.entries[name] = entry }
        }

        /// The indices that SQLite maintains, whatever the entries call their table.
        mutating func readIndices(of tables: [String], in database: Database) throws(OperationalError) {
            for table in tables {
                indices[table] = Set(
                    try database.rows("SELECT name FROM pragma_index_list(?)", binding: .text(table)) {
                        $0.text(0)
                    })
            }
        }
    }

    /// That of this build's layout; nil if its migrations cannot be run.
    private static let current = try? catalogue(of: .current)

    /// What the migrations make of an empty file.
    private static func catalogue(of layout: SQLiteLayout) throws(OperationalError) -> Catalogue {
        let database = try Database(path: ":memory:")
        try layout.make(in: database)
        var catalogue = try Catalogue(of: database)
        try catalogue.readIndices(of: tables(of: catalogue), in: database)
        return catalogue
    }

    private static func tables(of catalogue: Catalogue) -> [String] {
        catalogue.entries.filter { $0.value.type == "table" }.keys.sorted()
    }

    /// The differences of a file with all migrations of `layout`, in the order of the tables' names.
    static func differences(
        from layout: SQLiteLayout, in database: Database
    ) throws(OperationalError) -> [SchemaDifference] {
        guard let expected = layout == .current ? current : try catalogue(of: layout) else {
            throw OperationalError(.failed, message: "SQLite: cannot build the schema in memory")
        }
        let tables = tables(of: expected)
        var found = try Catalogue(of: database)
        try found.readIndices(of: tables, in: database)
        var differences: [SchemaDifference] = []
        for (name, entry) in expected.entries.sorted(by: { $0.key < $1.key }) {
            let actual = found.entries[name]
            guard actual != entry else { continue }
            let fault = actual == nil ? "is missing" : "was rebuilt: its definition is another"
            differences.append(
                SchemaDifference(table: entry.table, text: "the \(entry.type) \(name) \(fault)"))
        }
        for table in tables {
            for name in (found.indices[table] ?? []).subtracting(expected.indices[table] ?? []).sorted() {
                differences.append(
                    SchemaDifference(
                        table: table, text: "the index \(name) was added: drop it if it is yours"))
            }
        }
        return differences
    }

    /// Throws if a file with all migrations of `layout` has other tables or indices than they make.
    static func require(_ layout: SQLiteLayout, in database: Database) throws(OperationalError) {
        guard let first = try differences(from: layout, in: database).first else { return }
        throw OperationalError(
            .failed,
            message: "\(database.path): \(first.table): \(first.text). Undo it, or restore a backup")
    }
}
