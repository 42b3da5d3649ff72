import CSQLite
import CountersignWire

/// A compiled statement with its values, for one run.
struct Statement: ~Copyable {
    private let handle: OpaquePointer
    private let sql: String
    private let connection: OpaquePointer
    private let cache: StatementCache
    private let path: String

    private init(
        handle: OpaquePointer, sql: String, connection: OpaquePointer, cache: StatementCache, path: String
    ) {
        self.handle = handle
        self.sql = sql
        self.connection = connection
        self.cache = cache
        self.path = path
    }

    /// Compiles `sql`, unless it is in the cache, and gives its `?` their values, in order.
    static func make(
        _ sql: String, _ values: [SQLValue], on connection: OpaquePointer, _ cache: StatementCache, path: String
    ) throws(Fault) -> Statement {
        guard let handle = cache.take(sql) else {
            throw SQLiteFault.fault(sqlite3_extended_errcode(connection), on: connection, path: path)
        }
        let statement = Statement(handle: handle, sql: sql, connection: connection, cache: cache, path: path)
        for (index, value) in values.enumerated() { try statement.bind(value, at: Int32(index + 1)) }
        return statement
    }

    deinit { cache.giveBack(handle, sql) }

    private func bind(_ value: SQLValue, at place: Int32) throws(Fault) {
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

    /// On to the next row; false after the last.
    func step() throws(Fault) -> Bool {
        let code = sqlite3_step(handle)
        switch code {
        case SQLITE_ROW: return true
        case SQLITE_DONE: return false
        default: throw fault(code)
        }
    }

    func isNull(_ column: Int32) -> Bool { sqlite3_column_type(handle, column) == SQLITE_NULL }

    func integer(_ column: Int32) -> Int64 { sqlite3_column_int64(handle, column) }

    func text(_ column: Int32) -> String {
        guard let start = sqlite3_column_text(handle, column) else { return "" }
        let count = Int(sqlite3_column_bytes(handle, column))
        return String(decoding: UnsafeBufferPointer(start: start, count: count), as: UTF8.self)
    }

    func blob(_ column: Int32) -> [UInt8] {
        guard let start = sqlite3_column_blob(handle, column) else { return [] }
        return Array(UnsafeRawBufferPointer(start: start, count: Int(sqlite3_column_bytes(handle, column))))
    }

    /// Nil where there are not sixteen bytes.
    func sessionID(_ column: Int32) -> SessionID? {
        guard let start = sqlite3_column_blob(handle, column) else { return nil }
        let bytes = UnsafeRawBufferPointer(start: start, count: Int(sqlite3_column_bytes(handle, column)))
        return SessionID(bytes.bindMemory(to: UInt8.self).span)
    }

    private func fault(_ code: Int32) -> Fault {
        SQLiteFault.fault(code, on: connection, path: path)
    }
}
