import CSQLite

/// Compiled statements of one connection, kept for their next run: to compile one costs several times what it costs to run
/// it. One that runs is out of the cache, so the same text may run within itself.
final class StatementCache {
    /// More than the texts that this module has.
    private static let most = 128

    private let connection: OpaquePointer
    private var idle: [String: OpaquePointer] = [:]

    init(_ connection: OpaquePointer) { self.connection = connection }

    deinit { empty() }

    /// Nil where the text does not compile; the connection then has the reason.
    func take(_ sql: String) -> OpaquePointer? {
        if let ready = idle.removeValue(forKey: sql) { return ready }
        var handle: OpaquePointer?
        guard sqlite3_prepare_v3(connection, sql, -1, UInt32(SQLITE_PREPARE_PERSISTENT), &handle, nil) == SQLITE_OK
        else {
            return nil
        }
        return handle
    }

    /// Ends the run, and forgets its values: what they were must not outlive it.
    func giveBack(_ handle: OpaquePointer, _ sql: String) {
        sqlite3_reset(handle)
        sqlite3_clear_bindings(handle)
        guard idle.count < StatementCache.most, idle[sql] == nil else {
            sqlite3_finalize(handle)
            return
        }
        idle[sql] = handle
    }

    /// Before the connection closes.
    func empty() {
        for handle in idle.values { sqlite3_finalize(handle) }
        idle = [:]
    }
}
