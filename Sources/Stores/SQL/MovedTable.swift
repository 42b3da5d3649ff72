import CountersignAuthority
import CountersignWire

/// A table that is moved from an SQLite file to a PostgreSQL database: its columns and the order of its rows,
/// which are the same in both.
struct MovedTable {
    /// The values of a row; texts as their bytes, so that a text that is not UTF-8 stays what it is.
    typealias Row = [SQLValue]

    /// All tables, each behind those that it refers to. The rest of PostgreSQL's are its own.
    static let names = [
        "meta", "revision", "app", "app_setting", "release", "release_setting", "release_rollout", "meter",
        "audit", "account", "erased_name", "known_device", "session_change", "session", "upload_ticket",
        "idempotent_request", "idempotent_use", "row_digest", "webhook_delivery", "webhook_account",
        "webhook_dropped", "account_code", "account_verification",
    ]
    /// The order of tables without a primary key, or whose key is a place in the file.
    private static let orders = [
        "revision": ["number"], "session_change": ["number"], "row_digest": ["name"],
        "idempotent_request": ["scope", "key"],
    ]
    /// Columns that count rows, and go on behind the last one.
    static let counters = [
        ("release", "number"), ("account", "number"), ("upload_ticket", "number"),
        ("webhook_delivery", "number"),
    ]
    /// Rows that are read or written with one round trip.
    private static let page = 500

    private enum Kind { case integer, text, blob }

    let name: String
    private let columns: [(name: String, kind: Kind)]
    /// The columns by whose values the rows are ordered; no two rows have the same.
    private let order: [Int]

    /// The table as the file describes it. Throws unless the database has the same columns.
    init(_ name: String, from source: Database, to target: Database) throws(OperationalError) {
        let described = try source.rows(
            "SELECT name, type, pk FROM pragma_table_info(?) ORDER BY cid", binding: .text(name)
        ) { (name: $0.text(0), type: $0.text(1), key: $0.integer(2)) }
        let names = described.map(\.name)
        let there = try target.rows(
            """
            SELECT convert_to(attname, 'UTF8') FROM pg_attribute
            WHERE attrelid = to_regclass(convert_from(?, 'UTF8')) AND attnum > 0 AND NOT attisdropped
            """, binding: .text("countersign.\(name)")
        ) { $0.text(0) }
        guard !names.isEmpty, Set(there).subtracting(["rowid"]) == Set(names) else {
            throw OperationalError(
                .failed,
                message: "\(target.path): \(name): expected the columns \(names.joined(separator: ", "))")
        }
        self.name = name
        columns = described.map { column in
            (column.name, column.type == "INTEGER" ? .integer : column.type == "TEXT" ? .text : .blob)
        }
        let key = described.enumerated().filter { $0.element.key > 0 }.sorted {
            $0.element.key < $1.element.key
        }
        order = MovedTable.orders[name]?.compactMap { names.firstIndex(of: $0) } ?? key.map(\.offset)
        guard !order.isEmpty else {
            throw OperationalError(.failed, message: "\(source.path): \(name): the table has no key")
        }
    }

    private var list: String { columns.map(\.name).joined(separator: ", ") }

    /// The next rows behind `last`, or the first ones; none behind the last one.
    func page(of database: Database, after last: Row?) throws(OperationalError) -> [Row] {
        let place = last.map { last in order.map { last[$0] } } ?? []
        return try database.rows(select(isFirst: last == nil, from: database), binding: place) {
            (row) throws(OperationalError) in columns.indices.map { value($0, of: row) }
        }
    }

    private func select(isFirst: Bool, from database: Database) -> String {
        let keys = order.map { columns[$0].name }.joined(separator: ", ")
        // A text's bytes are a text again for SQLite, which orders blobs behind all texts.
        let values = order.map { place in
            database.sqlite != nil && columns[place].kind == .text ? "CAST(? AS TEXT)" : "?"
        }.joined(separator: ", ")
        let start = isFirst ? "" : "WHERE (\(keys)) > (\(values))"
        return "SELECT \(list) FROM \(name) \(start) ORDER BY \(keys) LIMIT \(MovedTable.page)"
    }

    private func value(_ place: Int, of row: borrowing Statement) -> SQLValue {
        let column = Int32(truncatingIfNeeded: place)
        guard !row.isNull(column) else { return .null }
        return columns[place].kind == .integer ? .integer(row.integer(column)) : .blob(row.blob(column))
    }

    /// Adds the rows to the database as they are, with their tags.
    func insert(_ rows: [Row], by connection: PostgreSQLConnection) throws(OperationalError) {
        let values = Array(repeating: "?", count: columns.count).joined(separator: ", ")
        let insert = connection.command(
            "INSERT INTO \(name) (\(list)) OVERRIDING SYSTEM VALUE VALUES (\(values))")
        try connection.runTogether(rows.map { (command: insert, values: $0) })
    }
}
