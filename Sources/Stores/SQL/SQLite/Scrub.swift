import CountersignAuthority
import CountersignWire

extension SQLiteFile {
    /// Empties the write-ahead log, looks for `texts` in the file, and writes the file anew if they are in
    /// parts that no row uses. Rows that contain them would contain them in the new file, too.
    func scrub(
        _ texts: [[UInt8]], rewriting: RewriteBound
    ) throws(OperationalError) -> ScrubOutcome {
        try use { (database) throws(OperationalError) in
            try database.emptyLog()
            let found = try database.find(texts)
            guard found.isInUnusedParts else { return found.isAnywhere ? .inRows : .absent }
            if case .upTo(let most) = rewriting, found.bytes > most {
                return .inUnusedParts(fileBytes: found.bytes)
            }
            // The copy is made in memory, because nothing is written outside the data folder.
            try database.execute("PRAGMA temp_store = MEMORY")
            try database.execute("VACUUM")
            try database.emptyLog()
            return try database.find(texts).isAnywhere ? .inRows : .absent
        }
    }
}

extension Database {
    /// Copies the write-ahead log into the file and truncates it; waits for other connections. Throws if one
    /// of them reads for too long.
    func emptyLog(
        failure: String = "erased, but it may still contain the name: run the command again"
    ) throws(OperationalError) {
        let isBusy = try rows("PRAGMA wal_checkpoint(TRUNCATE)") { $0.integer(0) != 0 }.first ?? true
        guard !isBusy else {
            throw OperationalError(
                .unreachable,
                message:
                    "\(path): another process has kept the write-ahead log in use for over five seconds: "
                    + failure)
        }
    }

    /// Where the file has one of the texts. A transaction that reads keeps others from changing the file.
    fileprivate func find(
        _ texts: [[UInt8]]
    ) throws(OperationalError) -> (isAnywhere: Bool, isInUnusedParts: Bool, bytes: Int64) {
        try execute("BEGIN; SELECT 1 FROM sqlite_schema LIMIT 1")
        defer { try? execute("COMMIT") }
        guard let sqlite else { return (false, false, 0) }
        let remains = try FileRemains(of: texts, in: self, through: sqlite)
        guard try remains.areAnywhere() else { return (false, false, remains.bytes) }
        return (true, try remains.areInUnusedParts(), remains.bytes)
    }
}
