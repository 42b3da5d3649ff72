import CSQLite
import CountersignAuthority
import CountersignWire

/// SQLite hands the rows over: through triggers that exist for one connection only, so that no statement
/// that changes a row can go round them, and through a function that statements call for each row they read.
extension RowRecorder {
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

    func makeTriggers(by rows: RowAuthenticator?, on connection: SQLiteConnection) throws(OperationalError) {
        try connection.execute("PRAGMA temp_store = MEMORY")
        if !hasTriggers { for table in AuthenticatedTable.all { try connection.execute(table.triggers) } }
        hasTriggers = true
        guard rows != nil else { return }
        // Triggers of the file could change rows in our name, and views stand for tables: only this
        // connection's own triggers run, among them copies of the file's as this build knows them.
        cs_sqlite_set(connection.handle, SQLITE_DBCONFIG_ENABLE_TRIGGER, 0)
        cs_sqlite_set(connection.handle, SQLITE_DBCONFIG_ENABLE_VIEW, 0)
        for trigger in connection.layout.connectionTriggers { try connection.execute(trigger) }
        try connection.execute(
            """
            CREATE TEMP TRIGGER row_audit_recorded BEFORE INSERT ON audit BEGIN
                SELECT cs_row_recorded(max(number), tag) FROM audit;
            END
            """)
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
        if pending.auditBefore == nil {
            pending.auditBefore =
                call.isNull(0)
                ? .empty : AuditHead(number: call.integer(0), tag: call.bytes(1).map { $0 })
        }
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
    func isNull(_ index: Int) -> Bool { sqlite3_value_type(values?[index]) == SQLITE_NULL }

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
