import CountersignAuthority
import CountersignGate
import CountersignWire

extension SQLiteStore {
    package func end(
        _ which: SessionSelection, _ end: SessionEnd, recording draft: AuditDraft?
    ) throws(Fault) -> [SessionID] {
        try write { (database) throws(Fault) in
            let ended = try SQLiteStore.end(which, end, in: database)
            if let draft, !ended.isEmpty { try SQLiteStore.add(draft, to: database) }
            return ended
        }
    }

    package func expireSessions(
        of app: AppName, usedBefore time: Int64, limit: Int, at now: Int64
    ) throws(Fault) -> [SessionID] {
        try write { (database) throws(Fault) in
            let idle = try SessionRows.ids(
                database,
                "SELECT id FROM session WHERE app = ? AND used < ? AND ended_at IS NULL ORDER BY used LIMIT ?",
                .text(app.description), .integer(time), .integer(Int64(limit)))
            let end = SessionEnd(.expired, at: now)
            for id in idle { _ = try SQLiteStore.end(id, end, in: database) }
            return idle
        }
    }

    package func forgetSessions(endedBefore time: Int64, limit: Int) throws(Fault) -> [SessionID] {
        try write { (database) throws(Fault) in
            try SessionRows.ids(
                database,
                """
                DELETE FROM session WHERE change IN (
                    SELECT change FROM session WHERE ended_at < ? ORDER BY ended_at LIMIT ?)
                RETURNING id
                """, .integer(time), .integer(Int64(limit)))
        }
    }

    /// All but those of the account that ended last. A few hundred at most, for the sake of who waits behind; the next
    /// session of the account goes on with the rest. What ended in this very transaction stays until then: who read it just
    /// before as live finds it ended, and not gone, and is put right.
    static func forgetEnded(
        of account: Int64, sparing ended: [StoredSession], in database: Database
    ) throws(Fault) -> [SessionID] {
        try SessionRows.ids(
            database,
            """
            DELETE FROM session WHERE change IN (
                SELECT change FROM session WHERE account = ? AND ended_at IS NOT NULL AND change < ?
                ORDER BY ended_at DESC, created DESC LIMIT 200 OFFSET ?)
            RETURNING id
            """, .integer(account), .integer(ended.first?.change ?? .max),
            .integer(Int64(max(0, SlotRule.mostEnded - ended.count))))
    }

    /// Ends those of them that live; answers which did.
    static func end(
        _ which: SessionSelection, _ end: SessionEnd, in database: Database
    ) throws(Fault) -> [SessionID] {
        let live = try SQLiteStore.live(which, in: database)
        for id in live { _ = try SQLiteStore.end(id, end, in: database) }
        return live
    }

    private static func live(_ which: SessionSelection, in database: Database) throws(Fault) -> [SessionID] {
        switch which {
        case .one(let id):
            return try SessionRows.ids(
                database, "SELECT id FROM session WHERE id = ? AND ended_at IS NULL", .blob(id.bytes))
        case .oneOf(let id, let account):
            return try SessionRows.ids(
                database, "SELECT id FROM session WHERE id = ? AND account = ? AND ended_at IS NULL", .blob(id.bytes),
                .integer(account))
        case .account(let number, let kept):
            return try SessionRows.ids(
                database, "SELECT id FROM session WHERE account = ? AND ended_at IS NULL AND id IS NOT ?",
                .integer(number), .optional(kept?.bytes))
        case .app(let app):
            return try SessionRows.ids(
                database, "SELECT id FROM session WHERE app = ? AND ended_at IS NULL", .text(app.description))
        case .all:
            return try SessionRows.ids(database, "SELECT id FROM session WHERE ended_at IS NULL")
        }
    }

    /// Answers the change's number.
    static func end(_ id: SessionID, _ end: SessionEnd, in database: Database) throws(Fault) -> Int64 {
        let change = try nextSessionChange(in: database)
        try database.run(
            "UPDATE session SET change = ?, ended_at = ?, end_reason = ?, ended_by = ? WHERE id = ?",
            .integer(change), .integer(end.at), .text(end.reason.rawValue), .optional(end.by), .blob(id.bytes))
        return change
    }
}
