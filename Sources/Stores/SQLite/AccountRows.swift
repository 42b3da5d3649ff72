import CountersignAuthority
import CountersignSchemes
import CountersignWire

/// Rows of the table of accounts, read as values.
enum AccountRows {
    static let select = """
        SELECT number, app, name, user_id, created, state, credential, sealed_record, rung, sealed_legacy, reset_hash,
            reset_until
        FROM account
        """

    static func account(_ number: Int64, in database: Database) throws(Fault) -> Account? {
        try read(database, select + " WHERE number = ?", .integer(number)).first
    }

    /// `sql` begins with ``select``.
    static func read(_ database: Database, _ sql: String, _ values: SQLValue...) throws(Fault) -> [Account] {
        try database.rows(sql, values) { (row) throws(Fault) in
            guard let account = account(row) else {
                throw Rows.unreadable("account", String(row.integer(0)), database)
            }
            return account
        }
    }

    private static func account(_ row: borrowing Statement) -> Account? {
        guard let app = AppName(row.text(1)), let name = try? AccountName(checking: row.blob(2).span),
            let state = Account.State(rawValue: row.text(5))
        else { return nil }
        var account = Account(
            number: row.integer(0), app: app, name: name, userID: row.isNull(3) ? nil : row.integer(3),
            created: row.integer(4))
        account.state = state
        if !row.isNull(6) {
            account.registration = StoredRegistration(credential: row.blob(6), sealedRecord: row.blob(7))
        }
        if !row.isNull(8) {
            guard let rung = Rung(rawValue: row.text(8)) else { return nil }
            account.legacy = LegacyCredential(rung: rung, sealed: row.blob(9))
        }
        if !row.isNull(10) { account.reset = StoredReset(codeHash: row.blob(10), until: row.integer(11)) }
        return account
    }
}
