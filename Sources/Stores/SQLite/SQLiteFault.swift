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
            return Fault(.unreachable, "\(path): the disk failed: \(reason(system, code)) (SQLite \(code))")
        default:
            return Fault(
                .failed, "\(path): \(String(cString: connection.map { sqlite3_errmsg($0) } ?? sqlite3_errstr(code)))")
        }
    }

    /// The system's word; where a commit fails SQLite keeps none, and says only what it was about.
    private static func reason(_ system: Int32, _ code: Int32) -> String {
        if system != 0 { return String(cString: strerror(system)) }
        // `SQLITE_IOERR_READ`, `_SHORT_READ`, `_WRITE`, `_FSYNC`, `_DIR_FSYNC`: macros that do not import.
        switch code >> 8 {
        case 1, 2: return "it cannot be read"
        case 3: return "it cannot be written to"
        case 4, 5: return "it cannot make durable what was written"
        default: return "input or output error"
        }
    }

    private static func full(_ path: String) -> Fault {
        Fault(.unreachable, "\(path): the disk is full; nothing was changed")
    }

    static func damaged(_ path: String) -> Fault {
        Fault(.unreachable, "\(path): not a database or damaged; restore a backup")
    }
}
