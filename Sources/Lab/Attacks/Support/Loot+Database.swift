import CSQLite

extension Loot {
    /// Every row of every table of the SQLite files at `paths`, whatever they are called. The newest come first.
    init(databases paths: [String]) throws(StageFault) {
        self.init()
        for path in paths { add(try Loot.rows(of: path)) }
    }

    private static let mostRows = 20_000

    private static func rows(of path: String) throws(StageFault) -> [Record] {
        var handle: OpaquePointer?
        defer { sqlite3_close_v2(handle) }
        guard sqlite3_open_v2(path, &handle, SQLITE_OPEN_READWRITE, nil) == SQLITE_OK, let handle else {
            throw StageFault("\(path): a stolen database that cannot be opened")
        }
        var rows: [Record] = []
        for table in try select("SELECT name FROM sqlite_schema WHERE type = 'table'", of: "tables", handle) {
            guard let name = table.values.first.map({ String(decoding: $0, as: UTF8.self) }) else { continue }
            let quoted = name.split(separator: "\"", omittingEmptySubsequences: false).joined(separator: "\"\"")
            rows += try select("SELECT * FROM \"\(quoted)\" LIMIT \(mostRows)", of: name, handle).reversed()
        }
        guard !rows.isEmpty else { throw StageFault("\(path): a stolen database with nothing in it") }
        return rows
    }

    private static func select(_ sql: String, of table: String, _ handle: OpaquePointer) throws(StageFault) -> [Record]
    {
        var statement: OpaquePointer?
        defer { sqlite3_finalize(statement) }
        guard sqlite3_prepare_v2(handle, sql, -1, &statement, nil) == SQLITE_OK else {
            throw StageFault("\(table): \(String(cString: sqlite3_errmsg(handle)))")
        }
        var rows: [Record] = []
        while sqlite3_step(statement) == SQLITE_ROW {
            let columns = 0..<sqlite3_column_count(statement)
            let values = columns.filter { sqlite3_column_type(statement, $0) != SQLITE_NULL }.map { column in
                // Numbers are given as text here, in decimal.
                let start = sqlite3_column_blob(statement, column)
                let count = Int(sqlite3_column_bytes(statement, column))
                return start.map { Array(UnsafeRawBufferPointer(start: $0, count: count)) } ?? []
            }
            rows.append(Record(place: "\(table) \(rows.count + 1)", values: values))
        }
        return rows
    }
}
