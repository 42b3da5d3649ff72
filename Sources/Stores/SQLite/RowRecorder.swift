import CSQLite
import CountersignAuthority
import CountersignWire

/// Authenticates the rows that one connection reads and writes. SQLite hands the rows over: through triggers
/// that exist for this connection only, so that no statement that changes a row can go round them, and
/// through a function that statements call for each row they read. What is computed is the authority's.
///
/// Not safe to share between threads, like the connection that owns it.
final class RowRecorder {
    private var rows: RowAuthenticator?
    /// Whether the rows have tags. Without an authenticator, such rows cannot be used.
    private var isTagged = false
    private var hasTriggers = false
    /// What the running transaction has changed.
    struct Pending {
        /// The change of each table's digest, by the table's number.
        var digests: [Int: RowDigest] = [:]
        /// The last audit record before the transaction's first.
        var auditBefore: Int64?
        /// Whether the reserved names were verified. Other connections cannot change them meanwhile.
        var areNamesVerified = false
    }

    /// Tombstones that are verified in each transaction that adds an account: less than 5 ms of one core.
    private static let mostVerifiedNames: Int64 = 1_000
    /// Accounts that are verified there, after each change by another connection: less than 50 ms.
    private static let mostVerifiedAccounts: Int64 = 10_000
    /// Rows of a table one group of which is verified before a session opens, after each change by another
    /// connection.
    private static let mostRowsOfGroups: Int64 = 10_000

    private(set) var pending = Pending()
    /// `PRAGMA data_version` when the accounts were last verified; nil if they never were.
    private var accountsVerified: Int64?
    /// The groups of each table, by its number, that were verified at a `PRAGMA data_version`.
    private var groupsVerified: (mark: Int64, groups: [Int: Set<Int>]) = (0, [:])
    /// Whether the row that was removed last, which an update replaces, was authentic.
    private var wasAuthentic = true
    private var examination: RowExamination?
    /// The sum of the rows of a group that is being verified.
    private var examinedGroup: RowDigest?

    // MARK: Setting up

    /// The functions must exist before a statement names them.
    func defineFunctions(on handle: OpaquePointer) {
        func define(
            _ name: String,
            body: @convention(c) (OpaquePointer?, Int32, UnsafeMutablePointer<OpaquePointer?>?) -> Void
        ) {
            // Only our own statements and triggers may call them, not the schema of a file.
            sqlite3_create_function_v2(
                handle, name, -1, SQLITE_UTF8 | SQLITE_DIRECTONLY, Unmanaged.passUnretained(self).toOpaque(),
                body, nil, nil, nil)
        }
        define("cs_row_added") {
            RowCall(in: $0, count: $1, values: $2).run { $0.added($1, isUpdate: false) }
        }
        define("cs_row_changed") {
            RowCall(in: $0, count: $1, values: $2).run { $0.added($1, isUpdate: true) }
        }
        define("cs_row_removed") { RowCall(in: $0, count: $1, values: $2).run { $0.removed($1) } }
        define("cs_row_recorded") { RowCall(in: $0, count: $1, values: $2).run { $0.recorded($1) } }
        define("cs_row_examined") { RowCall(in: $0, count: $1, values: $2).run { $0.examined($1) } }
        define("cs_row_summed") { RowCall(in: $0, count: $1, values: $2).run { $0.summed($1) } }
        define("cs_row_is_authentic") { RowCall(in: $0, count: $1, values: $2).run { $0.check($1) } }
    }

    /// Verifies and tags by `rows` from now on. Does nothing while the file has no place for tags. Without
    /// `rows`, a file with tags cannot be changed.
    func start(by rows: RowAuthenticator?, on database: Database) throws(OperationalError) {
        let exists = try database.integer("SELECT 1 FROM sqlite_schema WHERE name = 'row_digest'") != nil
        guard exists else {
            // Without digests, all rows would count as right.
            guard try Migrations.version(database) < Migrations.authenticatedVersion else {
                throw OperationalError(
                    .failed,
                    message: "\(database.path): the table of row digests was removed; restore a backup")
            }
            return
        }
        guard self.rows == nil else { return }
        isTagged = try database.integer("SELECT 1 FROM row_digest LIMIT 1") != nil
        guard rows != nil || isTagged else { return }
        try database.execute("PRAGMA temp_store = MEMORY")
        if !hasTriggers { for table in AuthenticatedTable.all { try database.execute(table.triggers) } }
        hasTriggers = true
        guard let rows else { return }
        // Triggers of the file could change rows in our name, and views stand for tables: only this
        // connection's own triggers run, among them copies of the file's as this build knows them.
        cs_sqlite_set(database.handle, SQLITE_DBCONFIG_ENABLE_TRIGGER, 0)
        cs_sqlite_set(database.handle, SQLITE_DBCONFIG_ENABLE_VIEW, 0)
        for trigger in Migrations.triggers { try database.execute(trigger) }
        try database.execute(
            """
            CREATE TEMP TRIGGER row_audit_recorded BEFORE INSERT ON audit BEGIN
                SELECT cs_row_recorded((SELECT coalesce(max(number), 0) FROM audit));
            END
            """)
        self.rows = rows
    }

    // MARK: Transactions

    func reset() { pending = Pending() }

    /// Takes back what was collected since `pending` was read.
    func restore(_ earlier: Pending) { pending = earlier }

    /// Adds what the transaction has collected to the digests. A digest that does not open stays as it is:
    /// making it anew would hide what was done to it.
    func flush(into database: Database) throws(OperationalError) {
        defer { pending = Pending() }
        guard let rows, !pending.digests.isEmpty || pending.auditBefore != nil else { return }
        var summary = try RowRecorder.sealed(RowSummary.name, in: database).flatMap { rows.openSummary($0) }
        let earlier = summary
        for (number, difference) in pending.digests {
            let table = AuthenticatedTable.all[number]
            guard let sealed = try RowRecorder.sealed(table.name, in: database),
                var digest = rows.open(sealed, of: table)
            else { continue }
            let isLatest = summary.map {
                $0.changes.indices.contains(number) && $0.changes[number] == digest.changes
            }
            digest.apply(difference)
            try RowRecorder.set(table.name, to: rows.seal(digest, of: table), in: database)
            if isLatest == true { summary?.changes[number] = digest.changes }
        }
        if let before = pending.auditBefore, before == summary?.audit {
            summary?.audit = try RowRecorder.lastAuditNumber(in: database)
        }
        if let summary, summary != earlier {
            try RowRecorder.set(RowSummary.name, to: rows.seal(summary), in: database)
        }
    }

    private static func lastAuditNumber(in database: Database) throws(OperationalError) -> Int64 {
        try database.integer("SELECT max(number) FROM audit") ?? 0
    }

    private static func sealed(_ name: String, in database: Database) throws(OperationalError) -> [UInt8]? {
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

    /// Tags all rows as they are, and begins the digests anew.
    func tagAll(in database: Database) throws(OperationalError) -> Int64 {
        guard let rows else { return 0 }
        var count: Int64 = 0
        var changes: [UInt64] = []
        for table in AuthenticatedTable.all {
            pending.digests[table.number] = nil
            try database.run(
                "UPDATE \(table.name) SET row_tag = cs_row_added(\(table.number), \(table.list()))"
                    + (table.condition().map { " WHERE \($0)" } ?? ""))
            var digest = pending.digests[table.number] ?? RowDigest()
            // Not from zero: a digest from before would fit once more when as many changes have been made.
            digest.changes = UInt64.random(in: 0..<(1 << 62))
            changes.append(digest.changes)
            count += digest.rows
            try RowRecorder.set(table.name, to: rows.seal(digest, of: table), in: database)
            pending.digests[table.number] = nil
        }
        var audit = pending.auditBefore
        if audit == nil { audit = try RowRecorder.lastAuditNumber(in: database) }
        let summary = RowSummary(changes: changes, audit: audit ?? 0)
        try RowRecorder.set(RowSummary.name, to: rows.seal(summary), in: database)
        return count
    }

    /// Reads all rows of these tables; nil without an authenticator.
    func examine(_ tables: [AuthenticatedTable], in database: Database) throws(OperationalError)
        -> RowVerification?
    {
        guard let rows else { return nil }
        examination = RowExamination(rows, summary: try RowRecorder.sealed(RowSummary.name, in: database))
        defer { examination = nil }
        for table in tables {
            do {
                _ = try database.rows(
                    "SELECT cs_row_examined(\(table.number), row_tag, \(table.list())) FROM \(table.rows)"
                ) { _ in }
                // The scan reads the rows themselves; statements find them by indices, which could hide some.
                let verdict = try database.rows("PRAGMA main.integrity_check(\(table.name))") { $0.text(0) }
                if verdict != ["ok"] { examination?.mismatch(table, text: verdict.first ?? "") }
            } catch  where error.kind == .failed {
                examination?.fail(table)
                continue
            }
            let sealed = try RowRecorder.sealed(table.name, in: database)
            examination?.finish(table, sealed: sealed, pending: pending.digests[table.number])
        }
        if tables.count == AuthenticatedTable.all.count {
            var last = pending.auditBefore
            if last == nil { last = try RowRecorder.lastAuditNumber(in: database) }
            examination?.finish(audit: last ?? 0)
            for difference in try Schema.differences(in: database) {
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
            try SQLiteStore.requireAuthentic(.erasedName, in: database)
        }
        let mark = try database.integer("PRAGMA data_version")
        if mark != accountsVerified,
            try count(of: .account, by: rows, in: database) <= RowRecorder.mostVerifiedAccounts
        {
            try SQLiteStore.requireAuthentic(.account, in: database)
            accountsVerified = mark
        }
        pending.areNamesVerified = true
    }

    /// The number of rows that the table's digest states; 0 if it does not open.
    private func count(
        of table: AuthenticatedTable, by rows: RowAuthenticator, in database: Database
    ) throws(OperationalError) -> Int64 {
        let sealed = try RowRecorder.sealed(table.name, in: database)
        return sealed.flatMap { rows.open($0, of: table)?.rows } ?? 0
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
        let mark = try database.integer("PRAGMA data_version") ?? 0
        if groupsVerified.mark != mark { groupsVerified = (mark, [:]) }
        for table in tables {
            let group = table.group(ofAccount: account)
            guard rows.accepts(group: group, of: table) else {
                throw SQLiteStore.unbalanced(table, account: account, in: database)
            }
            guard groupsVerified.groups[table.number]?.contains(group) != true else { continue }
            guard try addsUp(group, of: table, by: rows, in: database) else {
                throw SQLiteStore.unbalanced(table, account: account, in: database)
            }
            groupsVerified.groups[table.number, default: []].insert(group)
        }
    }

    /// Whether the authentic rows of the group are those of the digest; true for a table with too many rows.
    private func addsUp(
        _ group: Int, of table: AuthenticatedTable, by rows: RowAuthenticator, in database: Database
    ) throws(OperationalError) -> Bool {
        let summary = try RowRecorder.sealed(RowSummary.name, in: database).flatMap { rows.openSummary($0) }
        guard let summary, summary.changes.indices.contains(table.number),
            var stored = try RowRecorder.sealed(table.name, in: database).flatMap({
                rows.open($0, of: table)
            }),
            stored.changes == summary.changes[table.number]
        else { return false }
        guard stored.rows <= RowRecorder.mostRowsOfGroups else { return true }
        if let changes = pending.digests[table.number] { stored.apply(changes) }
        examinedGroup = RowDigest()
        defer { examinedGroup = nil }
        _ = try database.rows(
            "SELECT cs_row_summed(\(table.number), row_tag, \(table.list())) FROM \(table.rowsOfGroup)",
            binding: .integer(Int64(group))
        ) { _ in }
        return examinedGroup?.hasSameRows(inGroup: group, as: stored) ?? false
    }

    // MARK: Called by SQLite for each row

    fileprivate func added(_ call: RowCall, isUpdate: Bool) {
        guard let rows, let row = call.row(from: 1) else { return call.fail() }
        pending.digests[row.table.number, default: RowDigest()].add(
            rows.sum(of: row.message), group: row.group)
        // A row that was not authentic does not become so by an update of some of its columns.
        guard !isUpdate || wasAuthentic else { return call.setBlob([]) }
        call.setBlob(rows.tag(of: row.message))
    }

    fileprivate func removed(_ call: RowCall) {
        guard let rows, let row = call.row(from: 2) else { return call.fail() }
        pending.digests[row.table.number, default: RowDigest()].remove(
            rows.sum(of: row.message), group: row.group)
        wasAuthentic = rows.isAuthentic(row.message, tag: call.bytes(1))
        call.setNull()
    }

    fileprivate func recorded(_ call: RowCall) {
        if pending.auditBefore == nil { pending.auditBefore = call.integer(0) }
        call.setNull()
    }

    fileprivate func examined(_ call: RowCall) {
        guard let row = call.row(from: 2) else { return call.setNull() }
        examination?.see(
            row.message, tag: call.bytes(1), group: row.group, of: row.table, label: call.label(of: row.table)
        )
        call.setNull()
    }

    /// A row that is not authentic is left out: the sum of the group that it was in then differs.
    fileprivate func summed(_ call: RowCall) {
        defer { call.setNull() }
        guard let rows, let row = call.row(from: 2), rows.isAuthentic(row.message, tag: call.bytes(1)) else {
            return
        }
        examinedGroup?.add(rows.sum(of: row.message), group: row.group)
    }

    fileprivate func check(_ call: RowCall) {
        guard let rows else { return call.setInteger(isTagged ? 0 : 1) }
        guard let row = call.row(from: 2) else { return call.setInteger(0) }
        let isAuthentic = rows.isAuthentic(row.message, tag: call.bytes(1))
        if !isAuthentic { rows.refused(call.label(of: row.table), of: row.table) }
        call.setInteger(isAuthentic && rows.accepts(group: row.group, of: row.table) ? 1 : 0)
    }
}

/// One call of a function from SQL. The first argument is the table's number; a tag may follow; then come
/// the covered columns.
private struct RowCall {
    private let context: OpaquePointer?
    private let count: Int
    private let values: UnsafeMutablePointer<OpaquePointer?>?

    struct Row {
        let table: AuthenticatedTable
        let message: RowMessage
        let group: Int
    }

    init(in context: OpaquePointer?, count: Int32, values: UnsafeMutablePointer<OpaquePointer?>?) {
        self.context = context
        self.count = Int(count)
        self.values = values
    }

    func run(_ body: (RowRecorder, RowCall) -> Void) {
        guard let recorder = sqlite3_user_data(context) else { return setNull() }
        body(Unmanaged<RowRecorder>.fromOpaque(recorder).takeUnretainedValue(), self)
    }

    /// Nil if the arguments are not those of a row.
    func row(from first: Int) -> Row? {
        guard let table = table, count == first + table.columns.count else { return nil }
        var message = RowMessage(table)
        for (place, column) in table.columns.enumerated() {
            let index = first + place
            switch sqlite3_value_type(values?[index]) {
            case SQLITE_NULL: break
            case SQLITE_INTEGER: message.add(integer: sqlite3_value_int64(values?[index]), column: column)
            case SQLITE_TEXT: message.add(text: bytes(index), column: column)
            default: message.add(blob: bytes(index), column: column)
            }
        }
        let account = table.account.map { sqlite3_value_int64(values?[first + $0]) }
        return Row(table: table, message: message, group: table.group(ofAccount: account))
    }

    func integer(_ index: Int) -> Int64 { sqlite3_value_int64(values?[index]) }

    private var table: AuthenticatedTable? {
        guard count > 0 else { return nil }
        let number = Int(sqlite3_value_int64(values?[0]))
        return AuthenticatedTable.all.indices.contains(number) ? AuthenticatedTable.all[number] : nil
    }

    /// A text's or blob's bytes, valid until the function returns. The bytes of a text are taken as they
    /// are: decoding would repair, and so hide, an alteration.
    func bytes(_ index: Int) -> UnsafeRawBufferPointer {
        let start = sqlite3_value_blob(values?[index])
        return UnsafeRawBufferPointer(start: start, count: Int(sqlite3_value_bytes(values?[index])))
    }

    /// The row's name in reports.
    func label(of table: AuthenticatedTable) -> String {
        table.label.map { place -> String in
            let index = count - table.columns.count + place
            switch sqlite3_value_type(values?[index]) {
            case SQLITE_INTEGER: return String(sqlite3_value_int64(values?[index]))
            case SQLITE_BLOB: return Base64.encode(Array(bytes(index).prefix(64)).span, as: .url)
            default: return String(decoding: bytes(index).prefix(128), as: UTF8.self)
            }
        }.joined(separator: " ")
    }

    func fail() { sqlite3_result_error(context, "the store was opened without the rows' key", -1) }
    func setNull() { sqlite3_result_null(context) }
    func setInteger(_ number: Int64) { sqlite3_result_int64(context, number) }
    func setBlob(_ bytes: [UInt8]) {
        if bytes.isEmpty {
            sqlite3_result_zeroblob(context, 0)
        } else {
            sqlite3_result_blob(context, bytes, Int32(bytes.count), cs_sqlite_transient())
        }
    }
}

extension AuthenticatedTable {
    /// The covered columns for SQL, each with `prefix`.
    func list(_ prefix: String = "") -> String { columns.map { prefix + $0 }.joined(separator: ", ") }

    /// Which rows are covered; nil for all. `prefix` stands before the column's name.
    fileprivate func condition(_ prefix: String = "") -> String? {
        guard !names.isEmpty else { return nil }
        return "\(prefix)name IN (\(names.map { "'\($0)'" }.joined(separator: ", ")))"
    }

    /// The covered rows for `FROM`.
    fileprivate var rows: String { name + (condition().map { " WHERE \($0)" } ?? "") }

    /// The rows of the group `?` for `FROM`. Of a table with row ids, the accounts' numbers are read from an
    /// index, which is much smaller than the table; an index that hides a row makes the sum another.
    fileprivate var rowsOfGroup: String {
        guard let account else { return rows }
        let condition = "\(columns[account]) & \(RowDigest.groups - 1) = ?"
        guard key.count == 1 else { return "\(name) WHERE \(condition)" }
        return "\(name) WHERE \(key[0]) IN (SELECT \(key[0]) FROM \(name) WHERE \(condition))"
    }

    /// For a statement that reads rows: 1 where the row is authentic.
    var check: String { "cs_row_is_authentic(\(number), \(name).row_tag, \(list("\(name).")))" }

    /// Triggers that tag each row that is written, and collect the changes of the digest.
    fileprivate var triggers: String {
        let row = key.map { "\($0) = NEW.\($0)" }.joined(separator: " AND ")
        let removal = "SELECT cs_row_removed(\(number), OLD.row_tag, \(list("OLD.")));"
        func tagging(_ function: String) -> String {
            "UPDATE \(name) SET row_tag = \(function)(\(number), \(list("NEW."))) WHERE \(row);"
        }
        let (new, old) = (condition("NEW.").map { "WHEN \($0)" }, condition("OLD.").map { "WHEN \($0)" })
        return """
            CREATE TEMP TRIGGER row_added_to_\(name) AFTER INSERT ON \(name) \(new ?? "") BEGIN
                \(tagging("cs_row_added"))
            END;
            CREATE TEMP TRIGGER row_changed_in_\(name) AFTER UPDATE OF \(list()) ON \(name) \(new ?? "") BEGIN
                \(removal)
                \(tagging("cs_row_changed"))
            END;
            CREATE TEMP TRIGGER row_removed_from_\(name) AFTER DELETE ON \(name) \(old ?? "") BEGIN
                \(removal)
            END;
            """
    }
}

extension SQLiteStore {
    package func authenticate(by rows: RowAuthenticator) throws(OperationalError) {
        if case .file(let file) = backing { try file.authenticate(by: rows) }
    }

    package func isEmpty() throws(OperationalError) -> Bool {
        try read(whenEmpty: true) { (database) throws(OperationalError) in
            for table in AuthenticatedTable.all.map(\.name) + ["audit"] {
                let exists =
                    try database.integer(
                        "SELECT 1 FROM sqlite_schema WHERE name = ?", binding: .text(table)) != nil
                guard exists else { continue }
                // A migration writes the first slot.
                let condition = table == AuthenticatedTable.meta.name ? " WHERE name <> 'seal-slot'" : ""
                guard try database.integer("SELECT 1 FROM \(table)\(condition) LIMIT 1") == nil else {
                    return false
                }
            }
            return true
        }
    }

    package func hasRowDigests() throws(OperationalError) -> Bool {
        try read(whenEmpty: false) { (database) throws(OperationalError) in
            try database.integer("SELECT 1 FROM row_digest LIMIT 1") != nil
        }
    }

    package func tagAllRows() throws(OperationalError) -> Int64 {
        try change { (database) throws(OperationalError) in try database.recorder.tagAll(in: database) }
    }

    package func changeMark() throws(OperationalError) -> Int64 {
        try read(whenEmpty: 0) { (database) throws(OperationalError) in
            try database.integer("PRAGMA data_version") ?? 0
        }
    }

    package func verifyRows() throws(OperationalError) -> RowVerification {
        try read(whenEmpty: RowVerification()) { (database) throws(OperationalError) in
            // Pages that were written to the file without SQLite do not replace those in memory.
            sqlite3_db_release_memory(database.handle)
            guard let found = try database.recorder.examine(AuthenticatedTable.all, in: database) else {
                throw OperationalError(.failed, message: "\(database.path): opened without the rows' key")
            }
            return found
        }
    }

    package func verifyGroup(
        ofAccount number: Int64, in tables: [AuthenticatedTable]
    ) throws(OperationalError) {
        try read(whenEmpty: ()) { (database) throws(OperationalError) in
            try database.recorder.requireGroup(ofAccount: number, of: tables, in: database)
        }
    }

    package func countRows() throws(OperationalError) -> Int64 {
        try read(whenEmpty: 0) { (database) throws(OperationalError) in
            try database.recorder.countAll(in: database)
        }
    }

    package func verifyNames() throws(OperationalError) {
        try read(whenEmpty: ()) { (database) throws(OperationalError) in
            try SQLiteStore.requireAuthentic(.account, .erasedName, in: database)
        }
    }

    package func deleteUnverified(groups: [Int: Set<Int>]) throws(OperationalError) -> Int64 {
        try write { (database) throws(OperationalError) in
            var count: Int64 = 0
            // What is accepted is what the indices find, too. Throws if two rows have one unique key.
            for table in AuthenticatedTable.all { try database.execute("REINDEX main.\(table.name)") }
            for table in [AuthenticatedTable.uploadTicket, .knownDevice, .session] {
                count += Int64(try database.run("DELETE FROM \(table.name) WHERE NOT \(table.check)"))
                for group in groups[table.number] ?? [] {
                    count += Int64(
                        try database.run(
                            "DELETE FROM \(table.name) WHERE account % \(RowDigest.groups) = ?",
                            binding: .integer(Int64(group))))
                }
            }
            return count
        }
    }

    /// Throws unless every row of these tables is authentic and the rows add up to the tables' digests.
    static func requireAuthentic(_ tables: AuthenticatedTable..., in database: Database)
        throws(OperationalError)
    {
        guard let found = try database.recorder.examine(tables, in: database),
            let first = found.findings.first
        else { return }
        throw OperationalError(
            .failed, message: "\(database.path): \(first.text); `countersign audit verify` tells more")
    }

    /// Throws if a name might be free only because the row that holds it is missing.
    static func requireReservedNames(in database: Database) throws(OperationalError) {
        try database.recorder.requireReservedNames(in: database)
    }

    static func unbalanced(
        _ table: AuthenticatedTable, account: Int64, in database: Database
    ) -> OperationalError {
        OperationalError(
            .failed,
            message:
                "\(database.path): \(table.name): the rows of account \(account)'s group do not add up; "
                + "`countersign audit verify` tells more")
    }

    static func altered(_ table: AuthenticatedTable, row: String, in database: Database) -> OperationalError {
        OperationalError(
            .failed,
            message:
                "\(database.path): \(table.name) \(row): the row was altered, or its group does not add up; "
                + "`countersign audit verify` tells more")
    }
}
