import CSQLite

/// One SQLite file of the lab's, and one connection to it. Safe to share: SQLite locks the connection.
///
/// It has a rollback journal, no schema versions and no encryption, as many backends have. Written data
/// survive the end of a process, but not a power failure, which the lab does not stage.
package final class LabDatabase: @unchecked Sendable {
    /// A value of an SQLite column.
    package enum Value: Sendable, Equatable {
        case null
        case integer(Int64)
        case text(String)

        package var integer: Int64? { if case .integer(let number) = self { number } else { nil } }
        package var text: String? { if case .text(let text) = self { text } else { nil } }
    }

    package let path: String
    private let handle: OpaquePointer

    /// Opens or creates the file, and runs `schema`, which must be repeatable.
    package init(path: String, schema: String) throws(LabError) {
        var handle: OpaquePointer?
        let flags = SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE | SQLITE_OPEN_FULLMUTEX
        let code = sqlite3_open_v2(path, &handle, flags, nil)
        guard code == SQLITE_OK, let handle else {
            sqlite3_close_v2(handle)
            throw LabError("\(path): \(String(cString: sqlite3_errstr(code)))")
        }
        self.handle = handle
        self.path = path
        sqlite3_busy_timeout(handle, 5000)
        // A run makes hundreds of logins and transfers: waiting for the disk at each would take most of its
        // time.
        try execute("PRAGMA synchronous = OFF; \(schema)")
    }

    deinit { sqlite3_close_v2(handle) }

    /// Runs one statement, and returns its rows.
    @discardableResult
    package func query(_ sql: String, binding values: Value...) throws(LabError) -> [[Value]] {
        try transaction { (connection) throws(LabError) in try connection.query(sql, binding: values) }
    }

    /// Commits all of `body` or none of it, without statements of other threads in between.
    package func transaction<Result: Sendable>(
        _ body: (Connection) throws(LabError) -> Result
    ) throws(LabError) -> Result {
        // SQLite's mutex is recursive: the calls in `body` lock it again.
        sqlite3_mutex_enter(sqlite3_db_mutex(handle))
        defer { sqlite3_mutex_leave(sqlite3_db_mutex(handle)) }
        try execute("BEGIN IMMEDIATE")
        do {
            let result = try body(Connection(database: self))
            try execute("COMMIT")
            return result
        } catch {
            sqlite3_exec(handle, "ROLLBACK", nil, nil, nil)
            throw error
        }
    }

    /// Copies a consistent state of the file to another file, as a thief of the database has it.
    package func copy(to target: String) throws(LabError) {
        let statement = try Statement.prepare("VACUUM INTO ?", binding: [.text(target)], on: handle)
        _ = try statement.step()
    }

    private func execute(_ sql: String) throws(LabError) {
        guard sqlite3_exec(handle, sql, nil, nil, nil) == SQLITE_OK else {
            throw LabError("\(path): \(String(cString: sqlite3_errmsg(handle)))")
        }
    }

    /// The connection during an open transaction.
    package struct Connection {
        fileprivate let database: LabDatabase

        @discardableResult
        package func query(_ sql: String, binding values: Value...) throws(LabError) -> [[Value]] {
            try query(sql, binding: values)
        }

        fileprivate func query(_ sql: String, binding values: [Value]) throws(LabError) -> [[Value]] {
            let statement = try Statement.prepare(sql, binding: values, on: database.handle)
            var rows: [[Value]] = []
            while try statement.step() { rows.append(statement.row) }
            return rows
        }
    }
}

/// A compiled statement with its values, for one run.
private final class Statement {
    private let handle: OpaquePointer
    private let connection: OpaquePointer

    private init(_ handle: OpaquePointer, on connection: OpaquePointer) {
        self.handle = handle
        self.connection = connection
    }

    static func prepare(
        _ sql: String, binding values: [LabDatabase.Value], on connection: OpaquePointer
    ) throws(LabError) -> Statement {
        var handle: OpaquePointer?
        sqlite3_prepare_v2(connection, sql, -1, &handle, nil)
        guard let handle else { throw LabError("\(sql): \(String(cString: sqlite3_errmsg(connection)))") }
        for (index, value) in values.enumerated() {
            let place = Int32(index + 1)
            switch value {
            case .null: sqlite3_bind_null(handle, place)
            case .integer(let number): sqlite3_bind_int64(handle, place, number)
            case .text(let text):
                sqlite3_bind_text(handle, place, text, Int32(text.utf8.count), cs_sqlite_transient())
            }
        }
        return Statement(handle, on: connection)
    }

    deinit { sqlite3_finalize(handle) }

    /// Goes to the next row; false after the last.
    func step() throws(LabError) -> Bool {
        switch sqlite3_step(handle) {
        case SQLITE_ROW: return true
        case SQLITE_DONE: return false
        default: throw LabError(String(cString: sqlite3_errmsg(connection)))
        }
    }

    var row: [LabDatabase.Value] { (0..<sqlite3_column_count(handle)).map { value($0) } }

    private func value(_ column: Int32) -> LabDatabase.Value {
        switch sqlite3_column_type(handle, column) {
        case SQLITE_INTEGER: return .integer(sqlite3_column_int64(handle, column))
        case SQLITE_NULL: return .null
        default:
            guard let start = sqlite3_column_text(handle, column) else { return .text("") }
            let count = Int(sqlite3_column_bytes(handle, column))
            return .text(String(decoding: UnsafeBufferPointer(start: start, count: count), as: UTF8.self))
        }
    }
}
