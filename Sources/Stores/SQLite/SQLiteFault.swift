import CSQLite
import CountersignWire

/// SQLite's result codes in words that say what to do. Source: sqlite.org/rescode.html.
enum SQLiteFault {
    static func fault(_ code: Int32, _ message: String, path: String) -> Fault {
        switch code & 0xFF {
        case SQLITE_NOTADB, SQLITE_CORRUPT:
            damaged(path)
        case SQLITE_FULL:
            Fault(.unreachable, "\(path): the disk is full; nothing was changed")
        case SQLITE_READONLY, SQLITE_PERM, SQLITE_AUTH:
            Fault(.unreachable, "\(path): cannot write to it; expected a file and a folder that this user may write")
        case SQLITE_CANTOPEN:
            Fault(.unreachable, "\(path): cannot open the database; expected a readable and writable file")
        case SQLITE_BUSY, SQLITE_LOCKED:
            Fault(.unreachable, "\(path): another process has kept it locked for over five seconds")
        case SQLITE_IOERR:
            Fault(.unreachable, "\(path): the disk failed while reading or writing (SQLite code \(code))")
        default:
            Fault(.failed, "\(path): \(message.isEmpty ? String(cString: sqlite3_errstr(code)) : message)")
        }
    }

    static func damaged(_ path: String) -> Fault {
        Fault(.unreachable, "\(path): not a database or damaged; restore a backup")
    }
}
