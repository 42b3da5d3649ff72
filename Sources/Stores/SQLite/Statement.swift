import CSQLite
import CountersignWire
import Glibc

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

    /// Compiles `sql`, unless it is in the cache, and binds the values to its `?` in order.
    static func make(
        _ sql: String, binding values: [SQLValue], on connection: OpaquePointer, cache: StatementCache,
        path: String
    ) throws(OperationalError) -> Statement {
        guard let handle = cache.take(sql) else {
            throw SQLiteResultCode.fault(sqlite3_extended_errcode(connection), on: connection, path: path)
        }
        let statement = Statement(handle: handle, sql: sql, connection: connection, cache: cache, path: path)
        for (index, value) in values.enumerated() { try statement.bind(value, at: Int32(index + 1)) }
        return statement
    }

    deinit { cache.recycle(handle, sql: sql) }

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

    func isNull(_ column: Int32) -> Bool { sqlite3_column_type(handle, column) == SQLITE_NULL }

    func integer(_ column: Int32) -> Int64 { sqlite3_column_int64(handle, column) }

    func text(_ column: Int32) -> String {
        guard let start = sqlite3_column_text(handle, column) else { return "" }
        let count = Int(sqlite3_column_bytes(handle, column))
        return String(decoding: UnsafeBufferPointer(start: start, count: count), as: UTF8.self)
    }

    /// Whether the column has these bytes. Makes no copy of them.
    func hasText(_ bytes: [UInt8], in column: Int32) -> Bool {
        let start = sqlite3_column_blob(handle, column)
        guard Int(sqlite3_column_bytes(handle, column)) == bytes.count else { return false }
        guard let start else { return bytes.isEmpty }
        return bytes.withUnsafeBytes { own in
            own.baseAddress.map { memcmp($0, start, own.count) == 0 } ?? true
        }
    }

    func blob(_ column: Int32) -> [UInt8] {
        guard let start = sqlite3_column_blob(handle, column) else { return [] }
        return Array(UnsafeRawBufferPointer(start: start, count: Int(sqlite3_column_bytes(handle, column))))
    }

    /// Nil if the column is empty or not a session id.
    func sessionID(_ column: Int32) -> SessionID? {
        guard let start = sqlite3_column_blob(handle, column) else { return nil }
        let bytes = UnsafeRawBufferPointer(start: start, count: Int(sqlite3_column_bytes(handle, column)))
        return SessionID(bytes.bindMemory(to: UInt8.self).span)
    }

    private func fault(_ code: Int32) -> OperationalError {
        SQLiteResultCode.fault(code, on: connection, path: path)
    }
}

/// Compiled statements of one connection, kept for reuse: compiling a statement costs several times what
/// running it costs. A running statement is not in the cache, so the same text may run within itself.
final class StatementCache {
    /// More than the number of texts in this module.
    private static let most = 128

    private let connection: OpaquePointer
    private var idle: [String: OpaquePointer] = [:]

    init(_ connection: OpaquePointer) { self.connection = connection }

    deinit { empty() }

    /// Nil if the text does not compile; the connection then has the reason.
    func take(_ sql: String) -> OpaquePointer? {
        if let ready = idle.removeValue(forKey: sql) { return ready }
        var handle: OpaquePointer?
        guard
            sqlite3_prepare_v3(connection, sql, -1, UInt32(SQLITE_PREPARE_PERSISTENT), &handle, nil)
                == SQLITE_OK
        else {
            return nil
        }
        return handle
    }

    /// Resets the statement and clears its values, which must not outlive the run.
    func recycle(_ handle: OpaquePointer, sql: String) {
        sqlite3_reset(handle)
        sqlite3_clear_bindings(handle)
        guard idle.count < StatementCache.most, idle[sql] == nil else {
            sqlite3_finalize(handle)
            return
        }
        idle[sql] = handle
    }

    /// Finalizes all statements; call it before the connection closes.
    func empty() {
        for handle in idle.values { sqlite3_finalize(handle) }
        idle = [:]
    }
}
