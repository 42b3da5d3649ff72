import CountersignWire

/// The tables and indices that the migrations make, compared with those of a file.
///
/// The schema is data of the file: a constraint with `ON CONFLICT IGNORE` turns a change into nothing,
/// without an error, and an index without some rows hides them. Triggers and views are not compared: those of
/// a file do not run (``RowRecorder/start(by:on:)``). Other tables may be there.
enum Schema {
    /// How the file differs from the migrations.
    struct Difference: Equatable {
        let table: String
        let text: String
    }

    private struct Entry: Equatable {
        let type: String
        let table: String
        /// Empty for an index that a constraint makes.
        let sql: String
    }

    /// The entries by name, and the names of each table's indices.
    private struct Layout {
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

    /// What the migrations make of an empty file; nil if they cannot be run.
    private static let expected: Layout? = try? {
        let database = try Database(path: ":memory:")
        for step in Migrations.steps { try database.execute(step) }
        var layout = try Layout(of: database)
        try layout.readIndices(of: Schema.tables(of: layout), in: database)
        return layout
    }()

    private static func tables(of layout: Layout) -> [String] {
        layout.entries.filter { $0.value.type == "table" }.keys.sorted()
    }

    /// The differences of a file with all migrations, in the order of the tables' names.
    static func differences(in database: Database) throws(OperationalError) -> [Difference] {
        guard let expected else {
            throw OperationalError(.failed, message: "SQLite: cannot build the schema in memory")
        }
        let tables = tables(of: expected)
        var found = try Layout(of: database)
        try found.readIndices(of: tables, in: database)
        var differences: [Difference] = []
        for (name, entry) in expected.entries.sorted(by: { $0.key < $1.key }) {
            let actual = found.entries[name]
            guard actual != entry else { continue }
            let fault = actual == nil ? "is missing" : "was rebuilt: its definition is another"
            differences.append(Difference(table: entry.table, text: "the \(entry.type) \(name) \(fault)"))
        }
        for table in tables {
            for name in (found.indices[table] ?? []).subtracting(expected.indices[table] ?? []).sorted() {
                differences.append(
                    Difference(table: table, text: "the index \(name) was added: drop it if it is yours"))
            }
        }
        return differences
    }

    /// Throws if a file with all migrations has other tables or indices than they make.
    static func require(in database: Database) throws(OperationalError) {
        guard let first = try differences(in: database).first else { return }
        throw OperationalError(
            .failed,
            message: "\(database.path): \(first.table): \(first.text). Undo it, or restore a backup")
    }
}
