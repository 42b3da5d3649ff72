import CountersignAuthority
import CountersignWire

extension PostgreSQLServer {
    /// The tables whose rows may have an account's name, or what its devices are called.
    private static let tables = ["account", "audit", "known_device", "session", "idempotent_request"]

    /// Writes the tables anew without the rows that are gone, unless they are larger than `rewriting` says.
    /// The server's write-ahead log and its backups are the operator's.
    func scrub(_ texts: [[UInt8]], rewriting: RewriteBound) throws(OperationalError) -> ScrubOutcome {
        try use { (database) throws(OperationalError) in
            var bytes: Int64 = 0
            for table in PostgreSQLServer.tables {
                bytes += try database.integer("SELECT pg_total_relation_size('countersign.\(table)')") ?? 0
            }
            if case .upTo(let most) = rewriting, bytes > most { return .inUnusedParts(fileBytes: bytes) }
            for table in PostgreSQLServer.tables {
                try database.execute("VACUUM (FULL) countersign.\(table)")
            }
            for text in texts where !text.isEmpty {
                for (table, column) in [("account", "name"), ("audit", "record")] {
                    let found = try database.integer(
                        "SELECT 1 FROM \(table) WHERE position(?::bytea in \(column)::bytea) > 0 LIMIT 1",
                        binding: .blob(text))
                    if found != nil { return .inRows }
                }
            }
            return .absent
        }
    }
}
