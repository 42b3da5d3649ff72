import CountersignAuthority
import CountersignGate
import CountersignSchemes
import CountersignWire

extension SQLStore {
    package func add(
        _ ticket: UploadTicketRecord, within bounds: UploadTicketBounds, at now: Int64
    ) throws(OperationalError) -> UploadTicketAddOutcome {
        try write { (database) throws(OperationalError) in
            let lives = try database.integer(
                "SELECT count(*) FROM session WHERE id = ? AND account = ? AND ended_at IS NULL",
                binding: .blob(ticket.session.bytes), .integer(ticket.account))
            guard lives == 1 else { return .sessionEnded }
            let unused = try database.rows(
                """
                SELECT count(*), count(*) FILTER (WHERE session = ?) FROM upload_ticket
                WHERE account = ? AND claimed IS NULL AND expires > ?
                """, binding: .blob(ticket.session.bytes), .integer(ticket.account), .integer(now)
            ) { (ofAccount: Int($0.integer(0)), ofSession: Int($0.integer(1))) }.first
            guard let unused, unused.ofAccount < bounds.ofAccount, unused.ofSession < bounds.ofSession else {
                return .full
            }
            try SQLStore.forgetUsedTickets(of: ticket.account, in: database)
            let upload = ticket.upload
            try database.run(
                """
                INSERT INTO upload_ticket (id, session, account, release, method, authority, target,
                    content_type, length, sha256, created, expires)
                VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)
                """, binding: .blob(ticket.id.bytes), .blob(ticket.session.bytes), .integer(ticket.account),
                .text(ticket.release.description), .text(String(decoding: upload.method, as: UTF8.self)),
                .text(String(decoding: upload.authority, as: UTF8.self)), .blob(upload.target),
                .optional(upload.contentType.map { String(decoding: $0, as: UTF8.self) }),
                .integer(Int64(upload.length)), .blob(upload.sha256), .integer(ticket.created),
                .integer(ticket.expires))
            return .yes
        }
    }

    /// Deletes the oldest used tickets beyond those that are kept.
    private static func forgetUsedTickets(of account: Int64, in database: Database) throws(OperationalError) {
        try database.run(
            """
            DELETE FROM upload_ticket WHERE number IN (
                SELECT number FROM upload_ticket WHERE account = ? AND claimed IS NOT NULL
                ORDER BY claimed DESC LIMIT 200 OFFSET ?)
            """, binding: .integer(account), .integer(Int64(UploadTicketBounds.mostUsed)))
    }

    package func uploadTicket(_ id: UploadTicketID) throws(OperationalError) -> UploadTicketRecord? {
        try read(whenEmpty: nil) { (database) throws(OperationalError) in
            try SQLStore.ticket(id, in: database)
        }
    }

    package func claimUploadTicket(_ id: UploadTicketID, at now: Int64) throws(OperationalError)
        -> UploadTicketClaim
    {
        try write { (database) throws(OperationalError) in
            let isAuthentic = try database.rows(
                "SELECT \(AuthenticatedTable.uploadTicket.check) FROM upload_ticket WHERE id = ?",
                binding: .blob(id.bytes)
            ) { $0.isAuthentic(0) }.first
            guard isAuthentic == true else { return try SQLStore.unclaimed(id, at: now, in: database) }
            let attempt = try database.rows(
                """
                UPDATE upload_ticket SET claimed = ?, attempts = attempts + 1
                WHERE id = ? AND claimed IS NULL AND expires > ? AND attempts < ?
                    AND EXISTS (SELECT 1 FROM session WHERE session.id = upload_ticket.session
                        AND session.ended_at IS NULL)
                RETURNING attempts
                """, binding: .integer(now), .blob(id.bytes), .integer(now),
                .integer(Int64(UploadTicketRecord.mostAttempts))
            ) { Int($0.integer(0)) }.first
            if let attempt { return .yes(attempt: attempt) }
            return try SQLStore.unclaimed(id, at: now, in: database)
        }
    }

    /// Why the ticket was not claimed. Throws if its row is altered.
    private static func unclaimed(
        _ id: UploadTicketID, at now: Int64, in database: Database
    ) throws(OperationalError) -> UploadTicketClaim {
        guard let ticket = try ticket(id, in: database), ticket.expires > now else { return .over }
        if let claimed = ticket.claimed { return .used(at: claimed) }
        return ticket.attempts >= UploadTicketRecord.mostAttempts ? .exhausted : .over
    }

    package func abandonUploadTicket(_ id: UploadTicketID, attempt: Int) throws(OperationalError) {
        try write { (database) throws(OperationalError) -> Void in
            try database.run(
                "UPDATE upload_ticket SET claimed = NULL WHERE id = ? AND attempts = ?",
                binding: .blob(id.bytes),
                .integer(Int64(attempt)))
        }
    }

    package func forgetUploadTickets(
        expiredBefore time: TrustedTime, limit: Int
    ) throws(OperationalError) -> Int {
        try write { (database) throws(OperationalError) in
            try database.run(
                """
                DELETE FROM upload_ticket WHERE number IN (
                    SELECT number FROM upload_ticket WHERE expires < ? ORDER BY expires LIMIT ?)
                """, binding: .integer(time.seconds), .integer(Int64(limit)))
        }
    }

    static func ticket(_ id: UploadTicketID, in database: Database) throws(OperationalError)
        -> UploadTicketRecord?
    {
        try database.rows(
            """
            SELECT session, account, release, method, authority, target, content_type, length, sha256,
                created, expires, claimed, attempts, \(AuthenticatedTable.uploadTicket.check)
            FROM upload_ticket WHERE id = ?
            """, binding: .blob(id.bytes)
        ) { (row) throws(OperationalError) -> UploadTicketRecord in
            guard row.isAuthentic(13) else {
                throw SQLStore.altered(
                    .uploadTicket, row: "of account \(row.integer(1))", in: database)
            }
            guard let session = row.sessionID(0), let release = KeyID(row.text(2)), row.blob(8).count == 32
            else {
                throw ReleaseRows.unreadable(
                    "upload ticket of account", named: String(row.integer(1)), in: database)
            }
            let upload = UploadDescription(
                method: Array(row.text(3).utf8), authority: Array(row.text(4).utf8), target: row.blob(5),
                contentType: row.isNull(6) ? nil : Array(row.text(6).utf8), length: Int(row.integer(7)),
                sha256: row.blob(8))
            return UploadTicketRecord(
                id: id, session: session, account: row.integer(1), release: release, upload: upload,
                created: row.integer(9), expires: row.integer(10),
                claimed: row.isNull(11) ? nil : row.integer(11),
                attempts: Int(row.integer(12)))
        }.first
    }
}
