import CountersignAuthority
import CountersignWire

/// What logins share over several nodes, in a PostgreSQL database, over connections of its own: no login
/// waits for the writer's disk. Each call is one statement, and so one round trip and one transaction.
final class PostgreSQLLogins: SharedLoginStore {
    private let server: PostgreSQLServer

    init(
        _ address: PostgreSQLAddress, rows: RowAuthenticator?, layout: StoreLayout = .current,
        interruptedBy drill: OutageDrill? = nil
    ) {
        server = PostgreSQLServer(address, rows: rows, layout: layout, interruptedBy: drill)
    }

    func addPendingLogin(
        _ row: PendingLoginRow, milliseconds: Int64, capacity: Int
    ) throws(OperationalError) {
        try server.use { (database) throws(OperationalError) in
            _ = try database.integer(
                "SELECT add_pending_login(?, ?, ?, ?, ?)", binding: .blob(row.id), .blob(row.holder),
                .blob(row.sealed), .integer(milliseconds), .integer(Int64(capacity)))
        }
    }

    func takePendingLogin(_ id: [UInt8]) throws(OperationalError) -> [UInt8]? {
        let rows = try server.use { (database) throws(OperationalError) in
            try database.rows("SELECT take_pending_login(?)", binding: .blob(id)) {
                $0.isNull(0) ? nil : $0.blob(0)
            }
        }
        return rows.first ?? nil
    }

    func expirePendingLogins() throws(OperationalError) {
        try server.use { (database) throws(OperationalError) in
            _ = try database.integer("SELECT expire_pending_logins()")
        }
    }

    // MARK: Limits

    func debitLogins(_ charges: [SharedCharge]) throws(OperationalError) -> SharedDebitOutcome {
        let columns: [[Int64]] = [
            charges.map(\.place.column.kind), charges.map(\.place.column.slot), charges.map(\.cost),
            charges.map(\.fullRefill), charges.map(\.mostDebt), charges.map(\.refusalCharge),
            charges.map { Int64($0.part) },
        ]
        let outcomes = try call("SELECT refused, wait, at FROM debit_logins", of: columns) { row in
            let index = Int(row.integer(0)) - 1
            return index < 0
                ? SharedDebitOutcome.allowed(at: row.integer(2))
                : .refused(index: index, wait: max(row.integer(1), 1))
        }
        guard let outcome = outcomes.first else {
            throw OperationalError(.failed, message: "the limits on logins were not counted")
        }
        return outcome
    }

    func refundLogins(_ debits: [SharedDebit]) throws(OperationalError) {
        let columns: [[Int64]] = [
            debits.map(\.place.column.kind), debits.map(\.place.column.slot), debits.map(\.cost),
            debits.map(\.at),
        ]
        _ = try call("SELECT refund_logins", of: columns) { $0.integer(0) }
    }

    func loginLimits(
        at places: [SharedLimitPlace]
    ) throws(OperationalError) -> (now: Int64, fullAt: [Int64]) {
        let columns: [[Int64]] = [places.map(\.column.kind), places.map(\.column.slot)]
        let rows = try call(
            """
            SELECT milliseconds(), coalesce((SELECT full_at FROM login_limit AS l
                WHERE l.kind = place.kind AND l.slot = place.slot), 0)
            FROM unnest
            """, of: columns, then: "WITH ORDINALITY AS place (kind, slot, number) ORDER BY number"
        ) { ($0.integer(0), $0.integer(1)) }
        return (rows.map(\.0).max() ?? 0, rows.map(\.1))
    }

    func expireLoginLimits() throws(OperationalError) {
        try server.use { (database) throws(OperationalError) in
            _ = try database.integer("SELECT expire_login_limits()")
        }
    }

    /// Calls a function of arrays. The number of statements is that of the arrays' lengths, which is small.
    private func call<Row>(
        _ function: String, of columns: [[Int64]], then rest: String = "",
        read: (borrowing Statement) throws(OperationalError) -> Row
    ) throws(OperationalError) -> [Row] {
        let arrays = columns.map { column in
            "ARRAY[\(column.map { _ in "?" }.joined(separator: ", "))]::bigint[]"
        }
        let sql = "\(function)(\(arrays.joined(separator: ", "))) \(rest)"
        return try server.use { (database) throws(OperationalError) in
            try database.rows(sql, binding: columns.flatMap { $0.map { .integer($0) } }, read: read)
        }
    }
}

extension SharedLimitPlace {
    fileprivate var column: (kind: Int64, slot: Int64) { (Int64(kind.rawValue), Int64(slot)) }
}
