import CSQLite

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
