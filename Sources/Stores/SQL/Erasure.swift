import CountersignAuthority
import CountersignGate
import CountersignSchemes
import CountersignSeal
import CountersignWire

extension SQLStore {
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
                guard let answer = SQLStore.answer(row) else {
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
                SELECT id, \(AuthenticatedTable.uploadTicket.check) FROM upload_ticket WHERE account = ?
                ORDER BY number
                """, binding: .integer(account)
            ) { $0.isAuthentic(1) ? $0.blob(0) : nil }
            var tickets: [UploadTicketRecord] = []
            for case let id? in ids {
                guard let id = UploadTicketID(id), let ticket = try SQLStore.ticket(id, in: database)
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
        _ account: Account, leaving tombstones: AccountTombstones, at now: Int64, recording draft: AuditDraft
    ) throws(OperationalError) -> AccountChangeOutcome {
        let number = account.number
        return try write { (database) throws(OperationalError) in
            guard let found = try AccountRows.account(number, in: database), found.name == account.name,
                found.userID == account.userID, !found.isErased
            else { return .missing }
            let ended = try SQLStore.end(
                .account(number, except: nil), with: SessionTermination(.disabled, at: now), in: database)
            try SQLStore.add(draft, to: database)
            let row = SQLValue.integer(number)
            // Requests of the ended sessions are still told why, so their rows stay as long as usual.
            try database.run("UPDATE session SET device_name = '' WHERE account = ?", binding: row)
            try database.run("DELETE FROM known_device WHERE account = ?", binding: row)
            try database.run("DELETE FROM upload_ticket WHERE account = ?", binding: row)
            try database.run("DELETE FROM webhook_delivery WHERE account = ?", binding: row)
            try database.run("DELETE FROM webhook_account WHERE account = ?", binding: row)
            try SQLStore.forgetCodes(of: number, in: database)
            try database.run(
                "DELETE FROM idempotent_request WHERE scope = ?",
                binding: .text(IdempotencyScope.account(number).description))
            for case let tombstone? in [tombstones.name, tombstones.userID] {
                try SQLStore.add(tombstone, of: account.app, in: database)
            }
            if let former = tombstones.formerIDs {
                try database.run(
                    "DELETE FROM erased_name WHERE app = ? AND tombstone BETWEEN ? AND ?",
                    binding: .text(account.app.description), .blob(former.lowerBound.bytes),
                    .blob(former.upperBound.bytes))
            }
            // The row stays, under a placeholder name, so that its number is not used again.
            try database.run(
                """
                UPDATE account SET name = ?, user_id = NULL,
                    state = 'removed', credential = NULL, sealed_record = NULL, rung = NULL,
                    sealed_legacy = NULL, reset_codes = NULL, pseudonym = NULL
                WHERE number = ?
                """, changing: "account \(number)", binding: [.text(SQLStore.placeholder), row])
            return .yes(ended: ended)
        }
    }

    /// A name that no account can have been given before.
    private static var placeholder: String { "erased-" + Hex.encode(SystemRandom().bytes(16).span) }

    package func hasTombstone(
        _ tombstone: AccountTombstone, of app: AppName
    ) throws(OperationalError) -> Bool {
        try read(whenEmpty: false) { (database) throws(OperationalError) in
            try SQLStore.isErased(tombstone, of: app, in: database)
        }
    }

    package func hasTombstones() throws(OperationalError) -> Bool {
        try read(whenEmpty: false) { (database) throws(OperationalError) in
            try database.integer("SELECT 1 FROM erased_name LIMIT 1") != nil
        }
    }

    static func add(
        _ tombstone: AccountTombstone, of app: AppName, in database: Database
    ) throws(OperationalError) {
        try database.run(
            "INSERT INTO erased_name (app, tombstone) VALUES (?, ?) ON CONFLICT DO NOTHING",
            binding: .text(app.description), .blob(tombstone.bytes))
    }

    /// A tombstone that is not authentic is reported, but still reserves the name or user id.
    static func isErased(
        _ tombstone: AccountTombstone, of app: AppName, in database: Database
    ) throws(OperationalError) -> Bool {
        !(try database.rows(
            """
            SELECT \(AuthenticatedTable.erasedName.check) FROM erased_name WHERE app = ? AND tombstone = ?
            """, binding: .text(app.description), .blob(tombstone.bytes)
        ) { $0.isAuthentic(0) }.isEmpty)
    }

    package func scrub(
        _ texts: [[UInt8]], rewriting: RewriteBound
    ) throws(OperationalError) -> ScrubOutcome {
        switch backing {
        case .file(let file): return try file.scrub(texts, rewriting: rewriting)
        case .server(let server): return try server.scrub(texts, rewriting: rewriting)
        case .transaction:
            throw OperationalError(.failed, message: "a file is not scrubbed within a transaction")
        }
    }
}

extension SQLStore {
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
