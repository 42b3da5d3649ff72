import CountersignAuthority
import CountersignGate
import CountersignSchemes
import CountersignWire

extension SQLiteStore {
    package func account(of pseudonym: AccountPseudonym) throws(OperationalError) -> Account? {
        try read(whenEmpty: nil) { (database) throws(OperationalError) in
            try AccountRows.list(
                in: database, sql: AccountRows.select + " WHERE pseudonym = ?",
                binding: [.blob(pseudonym.bytes)]
            ).first?.row
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
                """
                SELECT id FROM upload_ticket WHERE account = ? AND \(AuthenticatedTable.uploadTicket.check)
                ORDER BY number
                """, binding: .integer(account)
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

    package func scrub(
        _ texts: [[UInt8]], rewriting: RewriteBound
    ) throws(OperationalError) -> ScrubOutcome {
        switch backing {
        case .file(let file): return try file.scrub(texts, rewriting: rewriting)
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
    /// Empties the write-ahead log, looks for `texts` in the file, and writes the file anew if they are in
    /// parts that no row uses. Rows that contain them would contain them in the new file, too.
    func scrub(
        _ texts: [[UInt8]], rewriting: RewriteBound
    ) throws(OperationalError) -> ScrubOutcome {
        try use { (database) throws(OperationalError) in
            try database.emptyLog()
            let found = try database.find(texts)
            guard found.isInUnusedParts else { return found.isAnywhere ? .inRows : .absent }
            if case .upTo(let most) = rewriting, found.bytes > most {
                return .inUnusedParts(fileBytes: found.bytes)
            }
            // The copy is made in memory, because nothing is written outside the data folder.
            try database.execute("PRAGMA temp_store = MEMORY")
            try database.execute("VACUUM")
            try database.emptyLog()
            return try database.find(texts).isAnywhere ? .inRows : .absent
        }
    }
}

extension Database {
    /// Copies the write-ahead log into the file and truncates it; waits for other connections. Throws if one
    /// of them reads for too long.
    func emptyLog(
        failure: String = "erased, but it may still contain the name: run the command again"
    ) throws(OperationalError) {
        let isBusy = try rows("PRAGMA wal_checkpoint(TRUNCATE)") { $0.integer(0) != 0 }.first ?? true
        guard !isBusy else {
            throw OperationalError(
                .unreachable,
                message:
                    "\(path): another process has kept the write-ahead log in use for over five seconds: "
                    + failure)
        }
    }

    /// Where the file has one of the texts. A transaction that reads keeps others from changing the file.
    fileprivate func find(
        _ texts: [[UInt8]]
    ) throws(OperationalError) -> (isAnywhere: Bool, isInUnusedParts: Bool, bytes: Int64) {
        try execute("BEGIN; SELECT 1 FROM sqlite_schema LIMIT 1")
        defer { try? execute("COMMIT") }
        let remains = try FileRemains(of: texts, in: self)
        guard try remains.areAnywhere() else { return (false, false, remains.bytes) }
        return (true, try remains.areInUnusedParts(), remains.bytes)
    }
}
