import CountersignAuthority
import CountersignGate
import CountersignHandshake
import CountersignSchemes
import CountersignWire

extension SQLStore {
    package func countSealed(otherThan slot: UInt8) throws(OperationalError) -> Int64 {
        try read(whenEmpty: 0) { (database) throws(OperationalError) in
            var count: Int64 = 0
            for table in SealedTable.allCases {
                for column in table.columns {
                    let number = try database.integer(
                        "SELECT count(*) FROM \(table.name) WHERE \(SealedTable.isOther(column))",
                        binding: .blob([slot]))
                    count += number ?? 0
                }
            }
            return count
        }
    }

    package func sealAgain(
        _ table: SealedTable, after position: Int64, limit: Int, unlessIn slot: UInt8,
        by seal: (SealedValue) -> [UInt8]?
    ) throws(OperationalError) -> SealProgress {
        var progress = SealProgress()
        // The reading may go through the whole table; writers are kept waiting for the rows found alone.
        let found = try read(whenEmpty: []) { (database) throws(OperationalError) in
            try database.rows(
                table.select, binding: .integer(position), .blob([slot]), .integer(Int64(limit))
            ) { (row) throws(OperationalError) in SealedRow(row, of: table) }
        }
        progress.seen = found.count
        // Settings are read all at once.
        progress.position = table != .appSettings && found.count == limit ? found.last?.position : nil
        guard !found.isEmpty else { return progress }
        let counts = try write { (database) throws(OperationalError) -> (sealed: Int, left: Int) in
            var (sealed, left) = (0, 0)
            for row in found {
                // Only what is still there: another process may have changed it since.
                guard let row = try SealedRow.find(row, of: table, in: database) else { continue }
                left += row.unreadable
                var changed: [(column: String, value: [UInt8])] = []
                for (column, value) in row.values where value.sealed.first != slot {
                    if let again = seal(value) { changed.append((column, again)) } else { left += 1 }
                }
                guard !changed.isEmpty else { continue }
                sealed += changed.count
                try SQLStore.update(row, of: table, to: changed, in: database)
            }
            // Servers read apps and releases again when the revision has changed.
            if sealed > 0, table == .appSettings || table == .releases {
                try database.run("UPDATE revision SET number = number + 1")
            }
            return (sealed, left)
        }
        (progress.sealed, progress.left) = counts
        return progress
    }

    package func emptyLog() throws(OperationalError) {
        guard case .file(let file) = backing else { return }
        try file.use { (database) throws(OperationalError) in
            try database.emptyLog(
                failure: "the former master key's values may still be in it: run this again")
        }
    }

    private static func update(
        _ row: SealedRow, of table: SealedTable, to values: [(column: String, value: [UInt8])],
        in database: Database
    ) throws(OperationalError) {
        var assignments = values.map { "\($0.column) = ?" }
        var binding = values.map { SQLValue.blob($0.value) }
        if table == .sessions {
            // So that servers read it again.
            assignments.append("change = ?")
            binding.append(.integer(try nextSessionChange(in: database)))
        }
        try database.run(
            "UPDATE \(table.name) SET \(assignments.joined(separator: ", ")) WHERE \(table.position) = ?"
                + (table == .appSettings ? " AND app = ? AND name = ?" : ""),
            binding: binding + [.integer(row.position)] + row.key)
    }
}

/// A row with sealed values.
private struct SealedRow {
    /// Its place among the table's rows.
    let position: Int64
    /// What names it beside the position.
    var key: [SQLValue] = []
    private(set) var values: [(column: String, value: SealedValue)] = []
    /// Sealed values of a row whose id cannot be read, so that it is not known what they are bound to.
    private(set) var unreadable = 0

    /// The same row as it is now; nil if it is gone.
    static func find(
        _ row: SealedRow, of table: SealedTable, in database: Database
    ) throws(OperationalError) -> SealedRow? {
        try database.rows(table.selectOne, binding: [.integer(row.position)] + row.key) {
            (row) throws(OperationalError) in SealedRow(row, of: table)
        }.first
    }

    init(_ row: borrowing Statement, of table: SealedTable) {
        position = row.integer(0)
        switch table {
        case .appSettings:
            let (app, name) = (row.text(1), row.text(2))
            key = [.text(app), .text(name)]
            add(row, column: 3, as: "sealed", at: .policy(name: name, app: app))
        case .releases:
            guard let id = KeyID(row.text(2)) else {
                unreadable = (row.isNull(3) ? 0 : 1) + (row.isNull(4) ? 0 : 1)
                return
            }
            let app = row.text(1)
            add(row, column: 3, as: "sealed_secret", at: .releaseKey(id, app: app, edition: .current))
            add(row, column: 4, as: "sealed_next_secret", at: .releaseKey(id, app: app, edition: .next))
        case .accounts:
            let (app, name) = (row.text(1), row.text(2))
            add(
                row, column: 4, as: "sealed_record",
                at: .registration(name: name, app: app, credential: row.blob(3)))
            add(
                row, column: 6, as: "sealed_legacy",
                at: .legacyCredential(name: name, app: app, rung: row.text(5)))
        case .sessions:
            guard let id = row.sessionID(2) else {
                unreadable = (row.isNull(4) ? 0 : 1) + (row.isNull(5) ? 0 : 1) + (row.isNull(6) ? 0 : 1)
                return
            }
            let (app, epoch) = (row.text(1), UInt64(max(row.integer(3), 0)))
            add(row, column: 4, as: "sealed_root", at: .sessionRoot(id, app: app, epoch: epoch))
            add(
                row, column: 5, as: "sealed_previous_root",
                at: .sessionRoot(id, app: app, epoch: epoch > 0 ? epoch - 1 : 0))
            add(row, column: 6, as: "next_sealed_root", at: .sessionRoot(id, app: app, epoch: epoch + 1))
        case .idempotentRequests:
            add(
                row, column: 3, as: "body",
                at: .idempotentAnswer(scope: row.text(1), key: row.blob(2)))
        }
    }

    private mutating func add(
        _ row: borrowing Statement, column: Int32, as name: String, at place: SealedValue.Place
    ) {
        let sealed = row.isNull(column) ? [] : row.blob(column)
        if !sealed.isEmpty { values.append((name, SealedValue(sealed, at: place))) }
    }
}

extension SealedTable {
    fileprivate var name: String {
        switch self {
        case .appSettings: "app_setting"
        case .releases: "release"
        case .accounts: "account"
        case .sessions: "session"
        case .idempotentRequests: "idempotent_request"
        }
    }

    /// The number by which the rows are ordered. Settings have none, and are read all at once.
    fileprivate var position: String {
        switch self {
        case .appSettings: "0"
        case .releases, .accounts: "number"
        case .sessions: "change"
        case .idempotentRequests: "rowid"
        }
    }

    fileprivate var columns: [String] {
        switch self {
        case .appSettings: ["sealed"]
        case .releases: ["sealed_secret", "sealed_next_secret"]
        case .accounts: ["sealed_record", "sealed_legacy"]
        case .sessions: ["sealed_root", "sealed_previous_root", "next_sealed_root"]
        case .idempotentRequests: ["body"]
        }
    }

    /// Rows after a position with a value of another slot. Rows that are not authentic are among them: a
    /// change of theirs gives them no tag.
    fileprivate var select: String {
        let condition = columns.map { SealedTable.isOther($0, slot: "?2") }.joined(separator: " OR ")
        let after = self == .appSettings ? "?1 = 0" : "\(position) > ?1"
        let limit = self == .appSettings ? "max(?3, 1000000)" : "?3"
        return "SELECT \(position), \(parts) FROM \(name) WHERE \(after) AND (\(condition))"
            + " ORDER BY \(self == .appSettings ? "app, name" : position) LIMIT \(limit)"
    }

    /// The row at a position.
    fileprivate var selectOne: String {
        "SELECT \(position), \(parts) FROM \(name) WHERE \(position) = ?"
            + (self == .appSettings ? " AND app = ? AND name = ?" : "")
    }

    private var parts: String {
        switch self {
        case .appSettings: "app, name, sealed"
        case .releases: "app, key_id, sealed_secret, sealed_next_secret"
        case .accounts: "app, name, credential, sealed_record, rung, sealed_legacy"
        case .sessions: "app, id, epoch, sealed_root, sealed_previous_root, next_sealed_root"
        case .idempotentRequests: "scope, key, body"
        }
    }

    fileprivate static func isOther(_ column: String, slot: String = "?") -> String {
        "length(\(column)) > 0 AND substr(\(column), 1, 1) <> \(slot)"
    }
}
