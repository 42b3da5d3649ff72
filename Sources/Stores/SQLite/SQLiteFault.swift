import CSQLite
import CountersignWire
import Glibc

/// SQLite's result codes in words that say what to do. Source: sqlite.org/rescode.html.
enum SQLiteFault {
    /// `SQLITE_IOERR_SHMSIZE`, a macro that does not import.
    private static let sharedMemorySize = SQLITE_IOERR | 19 << 8

    /// The fault of the last call on this connection; nil for one that could not even be made.
    static func fault(_ code: Int32, on connection: OpaquePointer?, path: String) -> Fault {
        switch code & 0xFF {
        case SQLITE_NOTADB, SQLITE_CORRUPT:
            return damaged(path)
        case SQLITE_FULL:
            return full(path)
        case SQLITE_READONLY, SQLITE_PERM, SQLITE_AUTH:
            return Fault(
                .unreachable, "\(path): cannot write to it; expected a file and a folder that this user may write")
        case SQLITE_CANTOPEN:
            return Fault(.unreachable, "\(path): cannot open the database; expected a readable and writable file")
        case SQLITE_BUSY, SQLITE_LOCKED:
            return Fault(.unreachable, "\(path): another process has kept it locked for over five seconds")
        case SQLITE_IOERR:
            let system = connection.map { sqlite3_system_errno($0) } ?? 0
            // The journal's index is mapped memory: where the disk has no room for it, this is how SQLite says so.
            if system == ENOSPC || system == EDQUOT || code == sharedMemorySize { return full(path) }
            return Fault(
                .unreachable, "\(path): the disk failed: \(String(cString: strerror(system))) (SQLite \(code))")
        default:
            return Fault(
                .failed, "\(path): \(String(cString: connection.map { sqlite3_errmsg($0) } ?? sqlite3_errstr(code)))")
        }
    }

    private static func full(_ path: String) -> Fault {
        Fault(.unreachable, "\(path): the disk is full; nothing was changed")
    }

    static func damaged(_ path: String) -> Fault {
        Fault(.unreachable, "\(path): not a database or damaged; restore a backup")
    }
}
