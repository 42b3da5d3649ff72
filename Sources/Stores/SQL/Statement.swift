import CPQ
import CSQLite
import CountersignWire
import Glibc

/// A row that a statement has returned; of SQLite, the compiled statement with its values, for one run, at
/// the row that it has come to.
struct Statement: ~Copyable {
    /// Of a row of PostgreSQL: the result that has it.
    private struct Place {
        let result: PostgreSQLResult
        let row: Int32
        let recorder: RowRecorder
    }

    /// Of SQLite: what the run belongs to.
    private struct Run {
        let sql: String
        let connection: OpaquePointer
        let cache: StatementCache
        let path: String
    }

    /// The compiled statement; unused for a row of PostgreSQL.
    private let handle: OpaquePointer
    private let run: Run?
    private let place: Place?

    private init(handle: OpaquePointer, run: Run) {
        self.handle = handle
        self.run = run
        place = nil
    }

    init(row: Int32, of result: PostgreSQLResult, verifiedBy recorder: RowRecorder) {
        handle = result.handle
        run = nil
        place = Place(result: result, row: row, recorder: recorder)
    }

    /// Compiles `sql`, unless it is in the cache, and binds the values to its `?` in order.
    static func make(
        _ sql: String, binding values: [SQLValue], on connection: OpaquePointer, cache: StatementCache,
        path: String
    ) throws(OperationalError) -> Statement {
        guard let handle = cache.take(sql) else {
            throw SQLiteResultCode.fault(sqlite3_extended_errcode(connection), on: connection, path: path)
        }
        let statement = Statement(
            handle: handle, run: Run(sql: sql, connection: connection, cache: cache, path: path))
        for (index, value) in values.enumerated() { try statement.bind(value, at: Int32(index + 1)) }
        return statement
    }

    deinit { if let run { run.cache.recycle(handle, sql: run.sql) } }

    private func bind(_ value: SQLValue, at place: Int32) throws(OperationalError) {
        let code =
            switch value {
            case .null: sqlite3_bind_null(handle, place)
            case .integer(let number): sqlite3_bind_int64(handle, place, number)
            case .text(let text):
                sqlite3_bind_text(handle, place, text, Int32(text.utf8.count), cs_sqlite_transient())
            case .blob(let bytes):
                bytes.isEmpty
                    ? sqlite3_bind_zeroblob(handle, place, 0)
                    : sqlite3_bind_blob(handle, place, bytes, Int32(bytes.count), cs_sqlite_transient())
            }
        guard code == SQLITE_OK else { throw fault(code) }
    }

    /// Advances to the next row; false after the last.
    func step() throws(OperationalError) -> Bool {
        let code = sqlite3_step(handle)
        switch code {
        case SQLITE_ROW: return true
        case SQLITE_DONE: return false
        default: throw fault(code)
        }
    }

    private func fault(_ code: Int32) -> OperationalError {
        SQLiteResultCode.fault(code, on: run?.connection, path: run?.path ?? "")
    }

    // MARK: Columns

    private func value(_ column: Int32, at place: Place) -> PostgreSQLValue {
        PostgreSQLValue(place.result.functions, of: handle, row: place.row, column: column)
    }

    /// The bytes of a text or blob, valid as long as the row. Null has none.
    private func bytes(_ column: Int32) -> UnsafeRawBufferPointer {
        if let place { return value(column, at: place).bytes }
        let start = sqlite3_column_blob(handle, column)
        return UnsafeRawBufferPointer(start: start, count: Int(sqlite3_column_bytes(handle, column)))
    }

    func isNull(_ column: Int32) -> Bool {
        if let place { return value(column, at: place).isNull }
        return sqlite3_column_type(handle, column) == SQLITE_NULL
    }

    func integer(_ column: Int32) -> Int64 {
        if let place { return value(column, at: place).integer }
        return sqlite3_column_int64(handle, column)
    }

    func text(_ column: Int32) -> String {
        if let place { return String(decoding: value(column, at: place).bytes, as: UTF8.self) }
        guard let start = sqlite3_column_text(handle, column) else { return "" }
        let count = Int(sqlite3_column_bytes(handle, column))
        return String(decoding: UnsafeBufferPointer(start: start, count: count), as: UTF8.self)
    }

    /// Whether the column has these bytes. Makes no copy of them.
    func hasText(_ bytes: [UInt8], in column: Int32) -> Bool {
        let stored = self.bytes(column)
        guard stored.count == bytes.count else { return false }
        guard let start = stored.baseAddress else { return bytes.isEmpty }
        return bytes.withUnsafeBytes { own in
            own.baseAddress.map { memcmp($0, start, own.count) == 0 } ?? true
        }
    }

    func blob(_ column: Int32) -> [UInt8] { Array(bytes(column)) }

    /// Nil if the column is empty or not a session id.
    func sessionID(_ column: Int32) -> SessionID? {
        let bytes = bytes(column)
        guard bytes.baseAddress != nil else { return nil }
        return SessionID(bytes.bindMemory(to: UInt8.self).span)
    }

    /// Whether the row of ``AuthenticatedTable/check``, which is the column, is authentic.
    func isAuthentic(_ column: Int32) -> Bool {
        if let place { return place.recorder.isAuthentic(value(column, at: place)) }
        return sqlite3_column_int64(handle, column) == 1
    }
}
