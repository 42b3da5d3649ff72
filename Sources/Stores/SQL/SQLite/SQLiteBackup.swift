import CSQLite
import CountersignAuthority
import CountersignWire
import Glibc

/// A copy of a database file from before a migration, beside it.
enum SQLiteBackup {
    /// Pages that are copied between two checks of the result.
    private static let pages: Int32 = 4_096

    /// Copies the file at `path`, of that level, and returns the copy's path: `PATH.level-LEVEL.TIME`, of
    /// mode 0600. Call within a transaction that keeps others from writing; the copy is made over a
    /// connection of its own, since SQLite copies nothing over one that writes. Source:
    /// sqlite.org/c3ref/backup_finish.html.
    static func make(of path: String, level: Int64) throws(OperationalError) -> String {
        var now = timespec()
        clock_gettime(CLOCK_REALTIME, &now)
        let copy = "\(path).level-\(level).\(timeText(at: now))"
        let file = open(copy, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0o600)
        guard file >= 0 else {
            throw SystemCallError(errno, while: "\(copy): cannot make the backup").fault(.unreachable)
        }
        close(file)
        do {
            try fill(copy, from: SQLiteConnection(path: path))
            try syncFolder(of: copy)
        } catch {
            unlink(copy)
            throw error
        }
        return copy
    }

    private static func fill(_ copy: String, from source: SQLiteConnection) throws(OperationalError) {
        let target = try SQLiteConnection(path: copy)
        guard let backup = sqlite3_backup_init(target.handle, "main", source.handle, "main") else {
            throw SQLiteResultCode.fault(
                sqlite3_errcode(target.handle), on: target.handle, path: copy)
        }
        var code = SQLITE_OK
        while code == SQLITE_OK { code = sqlite3_backup_step(backup, pages) }
        let end = sqlite3_backup_finish(backup)
        guard code == SQLITE_DONE, end == SQLITE_OK else {
            throw SQLiteResultCode.fault(code == SQLITE_DONE ? end : code, on: target.handle, path: copy)
        }
        // The header says that there is a write-ahead log, as in the original; the copy is one file.
        guard sqlite3_exec(target.handle, "PRAGMA journal_mode = DELETE", nil, nil, nil) == SQLITE_OK else {
            throw SQLiteResultCode.fault(
                sqlite3_errcode(target.handle), on: target.handle, path: copy)
        }
    }

    /// So that the copy is found after a power failure.
    private static func syncFolder(of copy: String) throws(OperationalError) {
        let path = copy.lastIndex(of: "/").map { String(copy[...$0]) } ?? "."
        let folder = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC)
        guard folder >= 0 else {
            throw SystemCallError(errno, while: "\(path): cannot open").fault(.unreachable)
        }
        defer { close(folder) }
        guard fsync(folder) == 0 else {
            throw SystemCallError(errno, while: "\(path): cannot sync").fault(.unreachable)
        }
    }

    /// Such as `2026-11-26T19:05:00Z-023456789`: two backups may be made in one second. Sorted as text, such
    /// times are in order.
    static func timeText(at now: timespec) -> String {
        let nanoseconds = String(1_000_000_000 + Int(now.tv_nsec)).dropFirst()
        return "\(CivilTime.rfc3339Text(Int64(now.tv_sec)))-\(nanoseconds)"
    }
}
