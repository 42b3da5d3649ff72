import CountersignAuthority
import CountersignWire

/// What logins share over several nodes, in a PostgreSQL database, over connections of its own: no login
/// waits for the writer's disk. Each call is one statement, and so one round trip and one transaction.
final class PostgreSQLLogins: SharedLoginStore {
    private let server: PostgreSQLServer

    init(_ address: PostgreSQLAddress, rows: RowAuthenticator?) {
        server = PostgreSQLServer(address, rows: rows)
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
}
