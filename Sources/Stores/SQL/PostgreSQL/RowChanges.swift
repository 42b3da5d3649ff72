import CountersignAuthority
import CountersignWire

/// PostgreSQL hands the rows over through triggers that write each changed row, as it was and as it is, to a
/// temporary table of the connection. The client reads them before it reads a tag or commits, and writes the
/// tags. It has the keys; the server has not.
extension RowRecorder {
    /// Rows that a scan fetches at a time.
    private static let page = 1_000

    /// Rows that other programs write have no place there, and the triggers refuse them.
    func makePlaceForChanges(in database: Database) throws(OperationalError) {
        guard !hasTriggers else { return }
        try database.execute(
            """
            CREATE TEMP TABLE IF NOT EXISTS row_change (
                place bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
                old bytea,
                new bytea
            ) ON COMMIT DELETE ROWS
            """)
        hasTriggers = true
    }

    func noteChanges() { hasChanges = true }

    /// Tags the rows that the transaction has written, and adds them to what it has changed of the digests.
    func collect(in database: Database) throws(OperationalError) {
        guard case .postgreSQL(let connection) = database.driver, hasChanges else { return }
        hasChanges = false
        // The rows of a store that has no tags yet.
        guard rows != nil || isTagged else { return }
        let changes = try database.rows(
            "SELECT place, old, new FROM pg_temp.row_change WHERE place > ? ORDER BY place",
            binding: .integer(pending.collected)
        ) {
            (place: $0.integer(0), old: $0.isNull(1) ? nil : $0.blob(1), new: $0.isNull(2) ? nil : $0.blob(2))
        }
        guard let last = changes.last else { return }
        guard let rows else {
            throw OperationalError(.failed, message: "the store was opened without the rows' key")
        }
        var batch = Batch(rows)
        for change in changes {
            guard try batch.add(old: change.old, new: change.new, to: &pending) else {
                throw OperationalError(
                    .failed, message: "\(database.path): a change of a row that this build cannot read")
            }
        }
        try batch.writeTags(on: connection)
        pending.collected = last.place
    }

    /// Counts the record that is about to be added to the audit log.
    func noteRecord(in database: Database) throws(OperationalError) {
        guard case .postgreSQL = database.driver, rows != nil, pending.auditBefore == nil else { return }
        pending.auditBefore = try RowRecorder.lastAudit(in: database)
    }

    // MARK: Reading

    /// Whether a row of ``AuthenticatedTable/check`` is authentic. A store without tags verifies none.
    func isAuthentic(_ value: PostgreSQLValue) -> Bool {
        // A constant stands where rows are read without a check.
        guard value.bytes.count > 8 else { return value.integer == 1 }
        guard let rows else { return !isTagged }
        guard let row = TaggedRow(value.bytes) else { return false }
        let isAuthentic = row.isAuthentic(by: rows)
        if !isAuthentic { rows.refused(row.label, of: row.table) }
        return isAuthentic && rows.accepts(group: row.group, of: row.table)
    }

    /// Hands all rows of the table to the examination.
    func scan(_ table: AuthenticatedTable, in database: Database) throws(OperationalError) {
        try database.savepoint { () throws(OperationalError) in
            try forEachRow(of: table, in: database) { (row) throws(OperationalError) in
                row.withTag { tag in
                    examination?.see(row.message, tag: tag, group: row.group, of: table, label: row.label)
                }
            }
        }
    }

    /// Tags all rows of the table, and counts them in ``pending``.
    func tag(
        _ table: AuthenticatedTable, by rows: RowAuthenticator, in database: Database
    ) throws(OperationalError) {
        guard case .postgreSQL(let connection) = database.driver else { return }
        var runs: [(PostgreSQLCommand, [SQLValue])] = []
        var digest = RowDigest()
        try forEachRow(of: table, in: database) { (row) throws(OperationalError) in
            digest.add(rows.sum(of: row.message), group: row.group)
            runs.append(row.update(to: rows.tag(of: row.message)))
            guard runs.count >= RowRecorder.page else { return }
            try connection.runTogether(runs)
            runs = []
        }
        if !runs.isEmpty { try connection.runTogether(runs) }
        pending.digests[table.number] = digest
    }

    /// Adds up the authentic rows of a group in ``examinedGroup``: the sum of a group that a row is missing
    /// from, or that a row that is not authentic was in, is another.
    func sum(
        _ group: Int, of table: AuthenticatedTable, by rows: RowAuthenticator, in database: Database
    ) throws(OperationalError) {
        var condition = table.condition() ?? "true"
        if let account = table.account { condition += " AND \(table.columns[account]) & 63 = \(group)" }
        let found = try database.rows("SELECT \(table.check) FROM \(table.name) WHERE \(condition)") {
            TaggedRow($0.blob(0))
        }
        for case let row? in found where row.isAuthentic(by: rows) {
            examinedGroup?.add(rows.sum(of: row.message), group: row.group)
        }
    }

    /// Deletes the rows of the table that are not authentic; returns how many.
    func deleteUnverified(
        of table: AuthenticatedTable, in database: Database
    ) throws(OperationalError) -> Int64 {
        switch database.driver {
        case .sqlite: return Int64(try database.run("DELETE FROM \(table.name) WHERE NOT \(table.check)"))
        case .postgreSQL:
            var altered: [(sql: String, key: [SQLValue])] = []
            try forEachRow(of: table, in: database) { (row) throws(OperationalError) in
                guard let rows, !row.isAuthentic(by: rows) || !rows.accepts(group: row.group, of: table)
                else { return }
                altered.append(("DELETE FROM \(table.name) WHERE \(table.keyCondition)", row.key))
            }
            for row in altered { try database.run(row.sql, binding: row.key) }
            return Int64(altered.count)
        }
    }

    /// Reads through a cursor, so that no more than a page of a large table is in memory.
    private func forEachRow(
        of table: AuthenticatedTable, in database: Database,
        body: (TaggedRow) throws(OperationalError) -> Void
    ) throws(OperationalError) {
        try collect(in: database)
        let select = "SELECT \(table.check) FROM \(table.rows)"
        // Settings are few, and read often.
        guard table.account != nil else {
            for row in try database.rows(select, binding: [], read: { TaggedRow($0.blob(0)) }) {
                guard let row else { throw RowRecorder.unreadable(table, in: database) }
                try body(row)
            }
            return
        }
        try database.run("DECLARE rows_of_\(table.name) NO SCROLL CURSOR FOR \(select)")
        while true {
            let rows = try database.rows("FETCH \(RowRecorder.page) FROM rows_of_\(table.name)") {
                TaggedRow($0.blob(0))
            }
            for row in rows {
                guard let row else { throw RowRecorder.unreadable(table, in: database) }
                try body(row)
            }
            if rows.count < RowRecorder.page { break }
        }
        try database.run("CLOSE rows_of_\(table.name)")
    }

    private static func unreadable(_ table: AuthenticatedTable, in database: Database) -> OperationalError {
        OperationalError(.failed, message: "\(database.path): \(table.name): a row that cannot be read")
    }

    /// Changes of rows in the order in which they were made.
    private struct Batch {
        private let rows: RowAuthenticator
        /// The rows as they are after the changes, by table and key; nil for those that are gone.
        private var latest: [RowIdentity: (row: TaggedRow, isAuthentic: Bool)?] = [:]

        init(_ rows: RowAuthenticator) { self.rows = rows }

        /// False if a row cannot be read.
        mutating func add(old: [UInt8]?, new: [UInt8]?, to pending: inout Pending) throws(OperationalError)
            -> Bool
        {
            var wasAuthentic = true
            var former: TaggedRow?
            if let old {
                guard let row = TaggedRow(old) else { return false }
                former = row
                pending.digests[row.table.number, default: RowDigest()].remove(
                    rows.sum(of: row.message), group: row.group)
                // A row that was changed before in this batch has no tag of its own yet.
                if case let earlier?? = latest[row.identity], earlier.row.message.bytes == row.message.bytes {
                    wasAuthentic = earlier.isAuthentic
                } else {
                    wasAuthentic = row.isAuthentic(by: rows)
                }
                latest[row.identity] = .some(nil)
            }
            guard let new else {
                pending.keep(former, changedTo: nil)
                return true
            }
            guard let row = TaggedRow(new) else { return false }
            pending.keep(former, changedTo: row)
            pending.digests[row.table.number, default: RowDigest()].add(
                rows.sum(of: row.message), group: row.group)
            // A row that was not authentic does not become so by an update of some of its columns.
            latest[row.identity] = (row, wasAuthentic)
            return true
        }

        func writeTags(on connection: PostgreSQLConnection) throws(OperationalError) {
            var runs: [(PostgreSQLCommand, [SQLValue])] = []
            for case let change? in latest.values {
                runs.append(change.row.update(to: change.isAuthentic ? rows.tag(of: change.row.message) : []))
            }
            guard !runs.isEmpty else { return }
            try connection.runTogether(runs)
        }
    }
}

extension RowRecorder.Pending {
    fileprivate mutating func keep(_ old: TaggedRow?, changedTo new: TaggedRow?) {
        guard let table = (new ?? old)?.table,
            let row = StoreChange.row(of: table, changedFrom: old?.values, to: new?.values)
        else { return }
        kept.append(row)
    }
}

/// What a row is found by.
private struct RowIdentity: Hashable {
    let table: Int
    let key: [UInt8]
}

/// A row as the server hands it over: the tag's length in four bytes, the tag, and the encoding.
private struct TaggedRow {
    let table: AuthenticatedTable
    let message: RowMessage
    let group: Int
    private let tag: [UInt8]
    let values: [String: RowMessage.Value]

    init?(_ bytes: [UInt8]) {
        let own = bytes.withUnsafeBytes { TaggedRow($0) }
        guard let own else { return nil }
        self = own
    }

    init?(_ bytes: UnsafeRawBufferPointer) {
        guard bytes.count >= 4 else { return nil }
        let count = Int(UInt32(bigEndian: bytes.loadUnaligned(as: UInt32.self)))
        guard bytes.count - 4 > count else { return nil }
        tag = Array(bytes[4..<4 + count])
        message = RowMessage(encoded: Array(bytes[(4 + count)...]))
        guard let (name, values) = message.decoded(),
            let table = AuthenticatedTable.all.first(where: { $0.name == name })
        else { return nil }
        self.table = table
        self.values = values
        var account: Int64?
        if let place = table.account, case .integer(let number)? = values[table.columns[place]] {
            account = number
        }
        group = table.group(ofAccount: account)
    }

    func isAuthentic(by rows: RowAuthenticator) -> Bool {
        withTag { rows.isAuthentic(message, tag: $0) }
    }

    func withTag<Result>(_ body: (UnsafeRawBufferPointer) -> Result) -> Result {
        tag.withUnsafeBytes { body($0) }
    }

    var key: [SQLValue] {
        table.key.map { column in
            switch values[column] {
            case .integer(let number)?: .integer(number)
            case .bytes(let bytes)?: .blob(bytes)
            case nil: .null
            }
        }
    }

    var identity: RowIdentity {
        var bytes: [UInt8] = []
        for column in table.key {
            switch values[column] {
            case .integer(let number)?: withUnsafeBytes(of: number.bigEndian) { bytes += $0 }
            case .bytes(let part)?:
                withUnsafeBytes(of: part.count.bigEndian) { bytes += $0 }
                bytes += part
            case nil: break
            }
        }
        return RowIdentity(table: table.number, key: bytes)
    }

    func update(to tag: [UInt8]) -> (PostgreSQLCommand, [SQLValue]) {
        (
            PostgreSQLCommand("UPDATE \(table.name) SET row_tag = ? WHERE \(table.keyCondition)"),
            [.blob(tag)] + key
        )
    }

    /// The row's name in reports.
    var label: String {
        table.label.map { place -> String in
            switch values[table.columns[place]] {
            case .integer(let number)?: String(number)
            case .bytes(let bytes)? where PostgreSQLTypes.isText(table, column: place):
                String(decoding: bytes.prefix(128), as: UTF8.self)
            case .bytes(let bytes)?: Base64.encode(Array(bytes.prefix(64)).span, as: .url)
            case nil: ""
            }
        }.joined(separator: " ")
    }
}

extension AuthenticatedTable {
    fileprivate var keyCondition: String { key.map { "\($0) = ?" }.joined(separator: " AND ") }
}
