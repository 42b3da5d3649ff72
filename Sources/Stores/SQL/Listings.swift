import CountersignAuthority
import CountersignSeal
import CountersignWire

extension SQLStore {
    package func listing(
        of app: AppName, after number: Int64, limit: Int
    ) throws(OperationalError) -> [ListedRow<Account>] {
        try read(whenEmpty: []) { (database) throws(OperationalError) in
            try AccountRows.list(
                in: database,
                sql: AccountRows.select + " WHERE app = ? AND number > ? ORDER BY number LIMIT ?",
                binding: [.text(app.description), .integer(number), .integer(Int64(limit))])
        }
    }

    package func listing(ofAccount number: Int64) throws(OperationalError) -> ListedRow<Account>? {
        try read(whenEmpty: nil) { (database) throws(OperationalError) in
            try AccountRows.list(
                in: database, sql: AccountRows.select + " WHERE number = ?", binding: [.integer(number)]
            ).first
        }
    }

    package func sessionListing(
        of app: AppName, limit: Int
    ) throws(OperationalError) -> [ListedRow<StoredSession>] {
        try read(whenEmpty: []) { (database) throws(OperationalError) in
            // Joins through the app's accounts: an index of sessions by app would serve only this query, but
            // be written at every refresh.
            try SessionRows.list(
                in: database,
                sql: SessionRows.select(
                    from: "account CROSS JOIN session")
                    + " WHERE session.account = account.number AND account.app = ?"
                    + " ORDER BY account.number, session.ended_at IS NOT NULL,"
                    + " session.created, session.id LIMIT ?",
                binding: [.text(app.description), .integer(Int64(limit))])
        }
    }

    package func alteredRows(of account: Int64) throws(OperationalError) -> [AlteredRow] {
        try read(whenEmpty: []) { (database) throws(OperationalError) in
            func rows(
                of table: AuthenticatedTable, named column: String,
                by name: (borrowing Statement) -> String
            ) throws(OperationalError) -> [AlteredRow] {
                try database.rows(
                    "SELECT \(column), \(table.check) FROM \(table.name) WHERE account = ?",
                    binding: .integer(account)
                ) { $0.isAuthentic(1) ? nil : AlteredRow(table, row: name($0), account: account) }
                .compactMap { $0 }
            }
            return try rows(of: .knownDevice, named: "id") { Hex.encode($0.blob(0).span) }
                + rows(of: .session, named: "id") { $0.sessionID(0)?.description ?? "?" }
                + rows(of: .uploadTicket, named: "number") { String($0.integer(0)) }
                + rows(of: .accountCode, named: "purpose") { $0.text(0) }
                + rows(of: .accountVerification, named: "account") { String($0.integer(0)) }
        }
    }
}
