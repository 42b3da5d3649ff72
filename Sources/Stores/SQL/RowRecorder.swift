import CountersignAuthority
import CountersignWire

/// Authenticates the rows that one connection reads and writes. The driver hands the rows over, through
/// triggers, so that no statement that changes a row can go round them. What is computed is the authority's.
///
/// Not safe to share between threads, like the connection that owns it.
final class RowRecorder {
    var rows: RowAuthenticator?
    /// Whether the rows have tags. Without an authenticator, such rows cannot be used.
    var isTagged = false
    var hasTriggers = false
    /// What the running transaction has changed.
    struct Pending {
        /// The change of each table's digest, by the table's number.
        var digests: [Int: RowDigest] = [:]
        /// The last audit record before the transaction's first.
        var auditBefore: AuditHead?
        /// ``RowSummary/restored`` from now on; nil if it stays.
        var restored: Int64?
        /// Whether the reserved names were verified. Other connections cannot change them meanwhile.
        var areNamesVerified = false
        /// The last change that PostgreSQL's triggers have handed over.
        var collected: Int64 = 0
        /// What ``StoreChange`` keeps of the rows.
        var kept: [[UInt8]] = []
    }

    /// Tombstones that are verified in each transaction that adds an account: less than 5 ms of one core.
    private static let mostVerifiedNames: Int64 = 1_000
    /// Accounts that are verified there, after each change by another connection: less than 50 ms.
    private static let mostVerifiedAccounts: Int64 = 10_000
    /// Rows of a table one group of which is verified before a session opens, after each change by another
    /// connection.
    private static let mostRowsOfGroups: Int64 = 10_000

    var pending = Pending()
    /// ``Database/changeMark()`` when the accounts were last verified; nil if they never were.
    private var accountsVerified: Int64?
    /// The groups of each table, by its number, that were verified at a ``Database/changeMark()``.
    private var groupsVerified: (mark: Int64, groups: [Int: Set<Int>]) = (0, [:])
    /// Whether the row that was removed last, which an update replaces, was authentic.
    var wasAuthentic = true
    var examination: RowExamination?
    /// The sum of the rows of a group that is being verified.
    var examinedGroup: RowDigest?

    /// Whether PostgreSQL may have rows for ``collect(in:)``.
    var hasChanges = false
    /// The summary that the last transaction leaves; nil if it has not changed it.
    private var reached: RowSummary?
    private var change: StoreChange?

    // MARK: Setting up

    /// Verifies and tags by `rows` from now on. Does nothing while the database has no layout. Without
    /// `rows`, a database with tags cannot be changed.
    func start(by rows: RowAuthenticator?, on database: Database) throws(OperationalError) {
        guard try database.hasTable("row_digest") else {
            // Without digests, all rows would count as right.
            guard try database.schemaLevel() == 0 else {
                throw OperationalError(
                    .failed,
                    message: "\(database.path): the table of row digests was removed; restore a backup")
            }
            return
        }
        guard self.rows == nil else { return }
        isTagged = try database.integer("SELECT 1 FROM row_digest LIMIT 1") != nil
        switch database.driver {
        case .sqlite(let connection):
            guard rows != nil || isTagged else { return }
            try makeTriggers(by: rows, on: connection)
        case .postgreSQL: try makePlaceForChanges(in: database)
        }
        guard let rows else { return }
        try rows.head?.require(of: database.path) { (number) throws(OperationalError) in
            try database.state(askingForAuditRecord: number)
        }
        self.rows = rows
    }

    // MARK: Transactions

    /// Keeps what the transaction has changed. It was committed, or may have been.
    func keepChange() {
        if let change { rows?.head?.keep(change) }
        change = nil
    }

    /// Notes how far the store has come. `transactions` is 0 for a file.
    func didCommit(transactions: Int64) {
        rows?.head?.follow(transactions: transactions, summary: reached)
    }

    func reset() {
        pending = Pending()
        hasChanges = false
    }

    /// Takes back what was collected since `pending` was read.
    func restore(_ earlier: Pending) {
        pending = earlier
        hasChanges = true
    }

    /// Adds what the transaction has collected to the digests, and those to the summary. A digest that is not
    /// the summary's stays as it is, and its table is given up: after as many changes as it lacked it would
    /// be the summary's again.
    func flush(into database: Database) throws(OperationalError) {
        defer { reset() }
        (reached, change) = (nil, nil)
        try collect(in: database)
        guard let rows, !pending.digests.isEmpty || pending.auditBefore != nil else { return }
        let sealed = try RowRecorder.sealed(RowSummary.name, in: database)
        guard var summary = try requireSummary(sealed, by: rows, in: database) else { return }
        for (number, difference) in pending.digests {
            let table = AuthenticatedTable.all[number]
            guard var digest = try digest(of: table, under: summary, by: rows, in: database) else {
                summary.giveUp(table)
                continue
            }
            digest.apply(difference)
            digest.id = .random()
            try RowRecorder.set(table.name, to: rows.seal(digest, of: table), in: database)
            summary.advance(to: digest, of: table)
        }
        if let before = pending.auditBefore {
            summary.advance(to: try RowRecorder.lastAudit(in: database), after: before)
        }
        if let restored = pending.restored { summary.restored = restored }
        let successor = rows.seal(summary)
        try RowRecorder.set(RowSummary.name, to: successor, in: database)
        reached = summary
        if case .postgreSQL = database.driver, let sealed {
            change = StoreChange(
                before: StoreChange.state(sealed), after: StoreChange.state(successor),
                position: StoreHead(of: summary, transactions: 0).position, rows: pending.kept)
        }
    }

    /// The summary, which is that of the store that was followed; nil while the digests have not begun.
    /// Without it, nothing could tell that what the transaction changes is put back later.
    private func requireSummary(
        _ sealed: [UInt8]?, by rows: RowAuthenticator, in database: Database
    ) throws(OperationalError) -> RowSummary? {
        guard let summary = sealed.flatMap({ rows.openSummary($0) }) else {
            guard isTagged || rows.head != nil else { return nil }
            throw OperationalError(
                .failed,
                message: "\(database.path): the summary of the digests is missing or altered, so nothing was "
                    + "changed; `countersign audit verify` tells more")
        }
        // This transaction has a number, too.
        let transactions = max(0, database.lastTransaction - 1)
        try rows.head?.require(summary, transactions: transactions, of: database.path)
        return summary
    }

    /// Nil if it is missing, or does not open.
    private func summary(
        by rows: RowAuthenticator, in database: Database
    ) throws(OperationalError) -> RowSummary? {
        try RowRecorder.sealed(RowSummary.name, in: database).flatMap { rows.openSummary($0) }
    }

    /// The table's digest; nil if it is not the summary's.
    private func digest(
        of table: AuthenticatedTable, under summary: RowSummary, by rows: RowAuthenticator,
        in database: Database
    ) throws(OperationalError) -> RowDigest? {
        guard let sealed = try RowRecorder.sealed(table.name, in: database),
            let digest = rows.open(sealed, of: table), summary.contains(digest, of: table)
        else { return nil }
        return digest
    }

    /// The last record of the audit log.
    static func lastAudit(in database: Database) throws(OperationalError) -> AuditHead {
        try database.rows("SELECT number, tag FROM audit ORDER BY number DESC LIMIT 1") {
            AuditHead(number: $0.integer(0), tag: $0.blob(1))
        }.first ?? .empty
    }

    static func sealed(_ name: String, in database: Database) throws(OperationalError) -> [UInt8]? {
        try database.rows("SELECT value FROM row_digest WHERE name = ?", binding: .text(name)) {
            $0.blob(0)
        }.first
    }

    private static func set(
        _ name: String, to sealed: [UInt8], in database: Database
    ) throws(OperationalError) {
        try database.run(
            """
            INSERT INTO row_digest (name, value) VALUES (?, ?)
            ON CONFLICT (name) DO UPDATE SET value = excluded.value
            """, binding: .text(name), .blob(sealed))
    }

    // MARK: Whole tables

    /// Tags the rows of a new database, and begins its digests.
    func beginDigests(by rows: RowAuthenticator, in database: Database) throws(OperationalError) {
        let former = self.rows
        self.rows = rows
        defer { self.rows = former }
        _ = try tagAll(in: database)
    }

    /// Tags all rows as they are, and begins the digests anew.
    func tagAll(in database: Database) throws(OperationalError) -> Int64 {
        guard let rows else { return 0 }
        var count: Int64 = 0
        var digests: [RowDigest] = []
        let former = try summary(by: rows, in: database)
        try collect(in: database)
        for table in AuthenticatedTable.all {
            pending.digests[table.number] = nil
            switch database.driver {
            case .sqlite:
                try database.run(
                    "UPDATE \(table.name) SET row_tag = cs_row_added(\(table.number), \(table.list()))"
                        + (table.condition().map { " WHERE \($0)" } ?? ""))
            case .postgreSQL: try tag(table, by: rows, in: database)
            }
            var digest = pending.digests[table.number] ?? RowDigest()
            digest.changes = firstChanges(of: table, after: [former?.changes, rows.head?.kept?.changes])
            digest.id = .random()
            digests.append(digest)
            count += digest.rows
            try RowRecorder.set(table.name, to: rows.seal(digest, of: table), in: database)
            pending.digests[table.number] = nil
        }
        var audit = pending.auditBefore
        if audit == nil { audit = try RowRecorder.lastAudit(in: database) }
        let summary = RowSummary(
            of: digests, audit: audit ?? .empty,
            restored: former?.restored ?? rows.head?.kept?.restored ?? 0)
        try RowRecorder.set(RowSummary.name, to: rows.seal(summary), in: database)
        return count
    }

    /// Not from zero: a digest from before would fit once more when as many changes have been made. Above
    /// what nodes have followed, for which the store would otherwise be an earlier copy.
    private func firstChanges(of table: AuthenticatedTable, after changes: [[UInt64]?]) -> UInt64 {
        let former = changes.compactMap {
            $0.flatMap { $0.indices.contains(table.number) ? $0[table.number] : nil }
        }
        guard let latest = former.max() else { return UInt64.random(in: 0..<(1 << 62)) }
        return latest &+ UInt64.random(in: 1..<(1 << 32))
    }

    /// Reads all rows of these tables; nil without an authenticator.
    func examine(_ tables: [AuthenticatedTable], in database: Database) throws(OperationalError)
        -> RowVerification?
    {
        guard let rows else { return nil }
        try collect(in: database)
        examination = RowExamination(rows, summary: try RowRecorder.sealed(RowSummary.name, in: database))
        defer { examination = nil }
        for table in tables {
            do {
                switch database.driver {
                case .sqlite:
                    _ = try database.rows(
                        "SELECT cs_row_examined(\(table.number), row_tag, \(table.list())) FROM \(table.rows)"
                    ) { _ in }
                    // The scan reads the rows themselves; statements find them by indices, which could hide
                    // some.
                    let verdict = try database.rows("PRAGMA main.integrity_check(\(table.name))") {
                        $0.text(0)
                    }
                    if verdict != ["ok"] { examination?.mismatch(table, text: verdict.first ?? "") }
                case .postgreSQL: try scan(table, in: database)
                }
            } catch  where error.kind == .failed {
                examination?.fail(table)
                continue
            }
            let sealed = try RowRecorder.sealed(table.name, in: database)
            examination?.finish(table, sealed: sealed, pending: pending.digests[table.number])
        }
        if tables.count == AuthenticatedTable.all.count {
            var last = pending.auditBefore
            if last == nil { last = try RowRecorder.lastAudit(in: database) }
            examination?.finish(audit: last ?? .empty)
            for difference in try database.schemaDifferences() {
                examination?.differ(difference.table, text: difference.text)
            }
        }
        return examination?.verification
    }

    /// Verifies the tombstones of erased names once in a transaction, and the accounts if another connection
    /// has changed the file since, unless there are too many to do so while other writers wait. Throws, too,
    /// if the background check has found that accounts or tombstones are missing.
    func requireReservedNames(in database: Database) throws(OperationalError) {
        guard let rows, !pending.areNamesVerified else { return }
        for table in [AuthenticatedTable.account, .erasedName] where !rows.isComplete(table) {
            throw OperationalError(
                .failed,
                message: "\(database.path): \(table.name): rows are missing, so a name might be free that "
                    + "is not; `countersign audit verify` tells more")
        }
        if try count(of: .erasedName, by: rows, in: database) <= RowRecorder.mostVerifiedNames {
            try SQLStore.requireAuthentic(.erasedName, in: database)
        }
        let mark = try database.changeMark()
        if mark != accountsVerified,
            try count(of: .account, by: rows, in: database) <= RowRecorder.mostVerifiedAccounts
        {
            try SQLStore.requireAuthentic(.account, in: database)
            accountsVerified = mark
        }
        pending.areNamesVerified = true
    }

    /// The number of rows that the table's digest states; 0 if it is not the summary's.
    private func count(
        of table: AuthenticatedTable, by rows: RowAuthenticator, in database: Database
    ) throws(OperationalError) -> Int64 {
        guard let summary = try summary(by: rows, in: database) else { return 0 }
        return try digest(of: table, under: summary, by: rows, in: database)?.rows ?? 0
    }

    /// The number of rows that the digests of all tables state together; 0 without an authenticator.
    func countAll(in database: Database) throws(OperationalError) -> Int64 {
        guard let rows else { return 0 }
        var sum: Int64 = 0
        for table in AuthenticatedTable.all { sum += try count(of: table, by: rows, in: database) }
        return sum
    }

    /// Verifies the group of the account's rows in each table, if another connection has changed the file
    /// since, unless the table is too large to do so while other writers wait. Throws, too, if the check of
    /// all rows has found that the group does not add up.
    func requireGroup(
        ofAccount account: Int64, of tables: [AuthenticatedTable], in database: Database
    ) throws(OperationalError) {
        guard let rows else { return }
        let mark = try database.changeMark()
        if groupsVerified.mark != mark { groupsVerified = (mark, [:]) }
        for table in tables {
            let group = table.group(ofAccount: account)
            guard rows.accepts(group: group, of: table) else {
                throw SQLStore.unbalanced(table, account: account, in: database)
            }
            guard groupsVerified.groups[table.number]?.contains(group) != true else { continue }
            guard try addsUp(group, of: table, by: rows, in: database) else {
                throw SQLStore.unbalanced(table, account: account, in: database)
            }
            groupsVerified.groups[table.number, default: []].insert(group)
        }
    }

    /// Whether the authentic rows of the group are those of the digest; true for a table with too many rows.
    private func addsUp(
        _ group: Int, of table: AuthenticatedTable, by rows: RowAuthenticator, in database: Database
    ) throws(OperationalError) -> Bool {
        try collect(in: database)
        guard let summary = try summary(by: rows, in: database),
            var stored = try digest(of: table, under: summary, by: rows, in: database)
        else { return false }
        guard stored.rows <= RowRecorder.mostRowsOfGroups else { return true }
        if let changes = pending.digests[table.number] { stored.apply(changes) }
        examinedGroup = RowDigest()
        defer { examinedGroup = nil }
        switch database.driver {
        case .sqlite:
            _ = try database.rows(
                "SELECT cs_row_summed(\(table.number), row_tag, \(table.list())) FROM \(table.rowsOfGroup)",
                binding: .integer(Int64(group))
            ) { _ in }
        case .postgreSQL: try sum(group, of: table, by: rows, in: database)
        }
        return examinedGroup?.hasSameRows(inGroup: group, as: stored) ?? false
    }
}
