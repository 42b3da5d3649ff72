import CSQLite

/// One SQLite file of the lab's, and one connection to it. Safe to share: SQLite locks the connection.
///
/// Kept as the field keeps it: a rollback journal, no schema versions, nothing sealed. What is written survives the end of a process, which
/// is all that the lab's servers go through.
package final class LabDatabase: @unchecked Sendable {
    /// A value as SQLite keeps it.
    package enum Value: Sendable, Equatable {
        case null
        case integer(Int64)
        case text(String)

        package var integer: Int64? { if case .integer(let number) = self { number } else { nil } }
        package var text: String? { if case .text(let text) = self { text } else { nil } }
    }

    package let path: String
    private let handle: OpaquePointer

    /// Opens the file, made where it is not there, and runs `schema`, which must not mind having been run before.
    package init(path: String, schema: String) throws(StageFault) {
        var handle: OpaquePointer?
        let flags = SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE | SQLITE_OPEN_FULLMUTEX
        let code = sqlite3_open_v2(path, &handle, flags, nil)
        guard code == SQLITE_OK, let handle else {
            sqlite3_close_v2(handle)
            throw StageFault("\(path): \(String(cString: sqlite3_errstr(code)))")
        }
        self.handle = handle
        self.path = path
        sqlite3_busy_timeout(handle, 5000)
        // Hundreds of logins and transfers a run: waiting for the disk at each would be most of the lab's time.
        try execute("PRAGMA synchronous = OFF; \(schema)")
    }

    deinit { sqlite3_close_v2(handle) }

    /// Runs one statement; its rows.
    @discardableResult
    package func rows(_ sql: String, _ values: Value...) throws(StageFault) -> [[Value]] {
        try transaction { (connection) throws(StageFault) in try connection.rows(sql, values) }
    }

    /// All of `body` or none of it, and nobody else's in between.
    package func transaction<Result: Sendable>(
        _ body: (Connection) throws(StageFault) -> Result
    ) throws(StageFault) -> Result {
        // SQLite's own, which a thread may take again: the calls inside do.
        sqlite3_mutex_enter(sqlite3_db_mutex(handle))
        defer { sqlite3_mutex_leave(sqlite3_db_mutex(handle)) }
        try execute("BEGIN IMMEDIATE")
        do throws(StageFault) {
            let result = try body(Connection(database: self))
            try execute("COMMIT")
            return result
        } catch {
            sqlite3_exec(handle, "ROLLBACK", nil, nil, nil)
            throw error
        }
    }

    /// What a thief of the file has: its bytes as of one moment, in a file of its own.
    package func copy(to target: String) throws(StageFault) {
        let statement = try Statement.make("VACUUM INTO ?", [.text(target)], on: handle)
        _ = try statement.step()
    }

    private func execute(_ sql: String) throws(StageFault) {
        guard sqlite3_exec(handle, sql, nil, nil, nil) == SQLITE_OK else {
            throw StageFault("\(path): \(String(cString: sqlite3_errmsg(handle)))")
        }
    }

    /// The connection while a transaction is open.
    package struct Connection {
        fileprivate let database: LabDatabase

        @discardableResult
        package func rows(_ sql: String, _ values: Value...) throws(StageFault) -> [[Value]] { try rows(sql, values) }

        fileprivate func rows(_ sql: String, _ values: [Value]) throws(StageFault) -> [[Value]] {
            let statement = try Statement.make(sql, values, on: database.handle)
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

    static func make(
        _ sql: String, _ values: [LabDatabase.Value], on connection: OpaquePointer
    ) throws(StageFault) -> Statement {
        var handle: OpaquePointer?
        sqlite3_prepare_v2(connection, sql, -1, &handle, nil)
        guard let handle else { throw StageFault("\(sql): \(String(cString: sqlite3_errmsg(connection)))") }
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

    /// On to the next row; false after the last.
    func step() throws(StageFault) -> Bool {
        switch sqlite3_step(handle) {
        case SQLITE_ROW: return true
        case SQLITE_DONE: return false
        default: throw StageFault(String(cString: sqlite3_errmsg(connection)))
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
