import CountersignAuthority
import CountersignGate
import CountersignSchemes
import CountersignWire

extension SQLiteStore {
    package func account(of pseudonym: AccountPseudonym) throws(OperationalError) -> Account? {
        try read(whenEmpty: nil) { (database) throws(OperationalError) in
            try AccountRows.read(
                in: database, sql: AccountRows.select + " WHERE pseudonym = ?",
                binding: .blob(pseudonym.bytes)
            ).first
        }
    }

    package func idempotentRequests(of account: Int64) throws(OperationalError) -> [HeldRequest] {
        let scope = IdempotencyScope.account(account)
        return try read(whenEmpty: []) { (database) throws(OperationalError) in
            try database.rows(
                """
                SELECT key, status, fields, body, digest, begun FROM idempotent_request WHERE scope = ?
                ORDER BY begun
                """, binding: .text(scope.description)
            ) { (row) throws(OperationalError) -> HeldRequest in
                let request = IdempotentRequest(
                    scope: scope, key: row.blob(0), digest: row.blob(4), begun: row.integer(5))
                guard !row.isNull(1) else { return HeldRequest(request, answer: nil) }
                guard let answer = SQLiteStore.answer(row) else {
                    throw ReleaseRows.unreadable(
                        "idempotent request of", named: scope.description, in: database)
                }
                return HeldRequest(request, answer: answer)
            }
        }
    }

    package func uploadTickets(of account: Int64) throws(OperationalError) -> [UploadTicketRecord] {
        try read(whenEmpty: []) { (database) throws(OperationalError) in
            let ids = try database.rows(
                "SELECT id FROM upload_ticket WHERE account = ? ORDER BY number", binding: .integer(account)
            ) { $0.blob(0) }
            var tickets: [UploadTicketRecord] = []
            for id in ids {
                guard let id = UploadTicketID(id), let ticket = try SQLiteStore.ticket(id, in: database)
                else {
                    throw ReleaseRows.unreadable(
                        "upload ticket of account", named: String(account), in: database)
                }
                tickets.append(ticket)
            }
            return tickets
        }
    }

    package func erase(
        _ number: Int64, named name: AccountName, leaving tombstone: AccountTombstone, at now: Int64,
        recording draft: AuditDraft
    ) throws(OperationalError) -> AccountChangeOutcome {
        try write { (database) throws(OperationalError) in
            guard let account = try AccountRows.account(number, in: database), account.name == name,
                !account.isErased
            else { return .missing }
            let ended = try SQLiteStore.end(
                .account(number, except: nil), with: SessionTermination(.disabled, at: now), in: database)
            try SQLiteStore.add(draft, to: database)
            let row = SQLValue.integer(number)
            // Requests of the ended sessions are still told why, so their rows stay as long as usual.
            try database.run("UPDATE session SET device_name = '' WHERE account = ?", binding: row)
            try database.run("DELETE FROM known_device WHERE account = ?", binding: row)
            try database.run("DELETE FROM upload_ticket WHERE account = ?", binding: row)
            try database.run(
                "DELETE FROM idempotent_request WHERE scope = ?",
                binding: .text(IdempotencyScope.account(number).description))
            try database.run(
                "INSERT INTO erased_name (app, tombstone) VALUES (?, ?) ON CONFLICT DO NOTHING",
                binding: .text(account.app.description), .blob(tombstone.bytes))
            // The row stays, under a placeholder name, so that its number is not used again.
            try database.run(
                """
                UPDATE account SET name = 'erased-' || lower(hex(randomblob(16))), user_id = NULL,
                    state = 'removed', credential = NULL, sealed_record = NULL, rung = NULL,
                    sealed_legacy = NULL, reset_hash = NULL, reset_until = NULL, pseudonym = NULL
                WHERE number = ?
                """, changing: "account \(number)", binding: [row])
            return .yes(ended: ended)
        }
    }

    package func hasTombstone(
        _ tombstone: AccountTombstone, of app: AppName
    ) throws(OperationalError) -> Bool {
        try read(whenEmpty: false) { (database) throws(OperationalError) in
            try SQLiteStore.isErased(tombstone, of: app, in: database)
        }
    }

    package func hasTombstones() throws(OperationalError) -> Bool {
        try read(whenEmpty: false) { (database) throws(OperationalError) in
            try database.integer("SELECT 1 FROM erased_name LIMIT 1") != nil
        }
    }

    /// A tombstone that is not authentic is reported, and reserves the name all the same.
    static func isErased(
        _ tombstone: AccountTombstone, of app: AppName, in database: Database
    ) throws(OperationalError) -> Bool {
        try database.integer(
            """
            SELECT \(AuthenticatedTable.erasedName.check) FROM erased_name WHERE app = ? AND tombstone = ?
            """, binding: .text(app.description), .blob(tombstone.bytes)) != nil
    }

    package func scrub(_ text: [UInt8]) throws(OperationalError) -> Bool {
        switch backing {
        case .file(let file): return try file.scrub(text)
        case .transaction:
            throw OperationalError(.failed, message: "a file is not scrubbed within a transaction")
        }
    }
}

extension SQLiteStore {
    package func rewriteAudit(_ rewrite: AuditRewrite) throws(OperationalError) {
        try write { (database) throws(OperationalError) -> Void in
            var rewrite = rewrite
            try database.execute("DROP TRIGGER IF EXISTS audit_is_not_altered")
            var after: Int64 = 0
            while true {
                let rows = try SQLiteStore.auditRows(after: after, limit: 500, in: database)
                for row in rows {
                    let new = try rewrite.row(row) { (name, app) throws(OperationalError) in
                        try SQLiteStore.pseudonym(of: name, in: app, database: database)
                    }
                    try database.run(
                        "UPDATE audit SET record = ?, tag = ? WHERE number = ?",
                        binding: .text(String(decoding: new.record, as: UTF8.self)), .blob(new.tag),
                        .integer(new.number))
                }
                guard let last = rows.last else { break }
                after = last.number
            }
            let (row, head) = try rewrite.end(SQLiteStore.value(of: .auditHead, in: database))
            try SQLiteStore.add(row, head: head, to: database)
            try database.execute(Migrations.auditIsNotAltered)
        }
    }

    /// The pseudonym of the app's account of that name; a random one if there is no such account.
    static func pseudonym(
        of name: AccountName, in app: AppName, database: Database
    ) throws(OperationalError) -> AccountPseudonym {
        let found = try database.rows(
            "SELECT pseudonym FROM account WHERE app = ? AND name = ?", binding: .text(app.description),
            .text(name.description)
        ) { $0.blob(0) }.first
        return found.flatMap { AccountPseudonym($0) } ?? AccountPseudonym()
    }
}

extension SQLiteFile {
    /// Empties the write-ahead log, looks for `text` in the file, and writes the file anew if it is there:
    /// SQLite overwrites deleted rows (`secure_delete`), but may leave a copy where it moved a row from page
    /// to page.
    func scrub(_ text: [UInt8]) throws(OperationalError) -> Bool {
        try use { (database) throws(OperationalError) in
            try database.emptyLog()
            guard try database.contains(text) else { return true }
            // The copy is made in memory, because nothing is written outside the data folder.
            try database.execute("PRAGMA temp_store = MEMORY")
            try database.execute("VACUUM")
            try database.emptyLog()
            return try !database.contains(text)
        }
    }
}

extension Database {
    /// Copies the write-ahead log into the file and truncates it; waits for other connections. Throws if one
    /// of them reads for too long.
    fileprivate func emptyLog() throws(OperationalError) {
        let isBusy = try rows("PRAGMA wal_checkpoint(TRUNCATE)") { $0.integer(0) != 0 }.first ?? true
        guard !isBusy else {
            throw OperationalError(
                .unreachable,
                message: "\(path): erased, but another process has kept the write-ahead log in use for over "
                    + "five seconds, so it may still contain the name: run the command again")
        }
    }

    /// Whether the file, freed parts included, contains `text`.
    fileprivate func contains(_ text: [UInt8]) throws(OperationalError) -> Bool {
        guard let first = text.first else { return false }
        let pages = try integer("PRAGMA page_count") ?? 0
        let size = pages * (try integer("PRAGMA page_size") ?? 0)
        let chunk = 1 << 20
        var bytes = [UInt8](repeating: 0, count: chunk + text.count)
        var offset: Int64 = 0
        while offset < size {
            guard read(&bytes, at: offset) else { throw SQLiteResultCode.damaged(path) }
            let isFound = bytes.withUnsafeBufferPointer { bytes in
                text.withUnsafeBufferPointer { text in
                    (0...(bytes.count - text.count)).contains { place in
                        bytes[place] == first
                            && text.indices.allSatisfy { bytes[place + $0] == text[$0] }
                    }
                }
            }
            if isFound { return true }
            offset += Int64(chunk)
        }
        return false
    }
}
