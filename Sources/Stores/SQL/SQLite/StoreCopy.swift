import CSQLite
import CountersignAuthority
import CountersignWire
import Glibc

/// A copy of an SQLite store's file, made while others write to it.
package struct StoreCopy {
    /// Pages that are copied between two reports.
    private static let pages: Int32 = 1_024

    private let source: String

    /// Nil for a store that is not a file.
    package init?(of place: StorePlace) {
        guard case .sqlite(let path) = place else { return nil }
        source = path
    }

    /// The store's file and its write-ahead log.
    package var bytes: UInt64 {
        ["", "-wal"].reduce(into: 0) { total, rest in
            var status = stat()
            if stat(source + rest, &status) == 0 { total += UInt64(max(status.st_size, 0)) }
        }
    }

    /// Copies what the store has at one moment to `path`, a file of mode 0600 that must not exist. All is
    /// copied within one read transaction, so that no writer makes the copy begin again; the store's
    /// write-ahead log grows meanwhile. `progress` gets bytes. Source: sqlite.org/c3ref/backup_finish.html.
    package func make(
        at path: String, progress: (_ done: Int64, _ total: Int64) -> Void
    ) throws(OperationalError) {
        let file = open(path, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0o600)
        guard file >= 0 else {
            throw SystemCallError(errno, while: "\(path): cannot make the copy").fault(.unreachable)
        }
        close(file)
        do throws(OperationalError) {
            let source = try SQLiteConnection(path: source)
            guard source.hasSQLiteHeader else { throw SQLiteResultCode.damaged(self.source) }
            try source.execute("BEGIN; SELECT 1 FROM sqlite_schema")
            defer { source.rollBack() }
            try fill(SQLiteConnection(path: path), from: source, progress: progress)
        } catch {
            StoreCopy.remove(path)
            throw error
        }
    }

    private func fill(
        _ target: SQLiteConnection, from source: SQLiteConnection,
        progress: (_ done: Int64, _ total: Int64) -> Void
    ) throws(OperationalError) {
        let statement = try source.statement("PRAGMA page_size", binding: [])
        let size = try statement.step() ? statement.integer(0) : 0
        guard let backup = sqlite3_backup_init(target.handle, "main", source.handle, "main") else {
            throw SQLiteResultCode.fault(
                sqlite3_errcode(target.handle), on: target.handle, path: target.path)
        }
        var code = SQLITE_OK
        while code == SQLITE_OK {
            code = sqlite3_backup_step(backup, StoreCopy.pages)
            let (left, all) = (sqlite3_backup_remaining(backup), sqlite3_backup_pagecount(backup))
            progress(Int64(all - left) * size, Int64(all) * size)
        }
        let end = sqlite3_backup_finish(backup)
        guard code == SQLITE_DONE, end == SQLITE_OK else {
            throw SQLiteResultCode.fault(
                code == SQLITE_DONE ? end : code, on: target.handle, path: target.path)
        }
        // The header says that there is a write-ahead log, as in the original; the copy is one file.
        try target.execute("PRAGMA journal_mode = DELETE")
    }

    /// Removes such a copy, with what SQLite has put beside it.
    package static func remove(_ path: String) {
        for rest in ["", "-wal", "-shm", "-journal"] { unlink(path + rest) }
    }

    /// The rows of each table of a copy.
    package static func count(
        in path: String, verifiedBy rows: RowAuthenticator
    ) throws(OperationalError) -> [(name: String, rows: Int64)] {
        let file = SQLiteFile(path: path, inspecting: .header, rows: rows)
        defer { file.close() }
        return try file.read(whenEmpty: []) { (database) throws(OperationalError) in
            var counts: [(name: String, rows: Int64)] = []
            for name in MovedTable.names {
                counts.append((name, try database.integer("SELECT count(*) FROM \(name)") ?? 0))
            }
            return counts
        }
    }

    /// Ends the write-ahead log that opening the copy has begun: it is one file again.
    package static func settle(_ path: String) throws(OperationalError) {
        let connection = try SQLiteConnection(path: path)
        connection.mayCheckpoint()
        try connection.execute("PRAGMA journal_mode = DELETE")
    }
}
