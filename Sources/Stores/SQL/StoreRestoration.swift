import CountersignAuthority
import CountersignGate
import CountersignSeal
import CountersignWire

/// Makes a copy of a store the store of a deployment again: what may have ended since the copy was made ends
/// now.
package struct StoreRestoration {
    /// What a restoration has ended.
    package struct Ended: Sendable, Equatable {
        package var sessions: Int64 = 0
        package var uploadTickets: Int64 = 0
        package var resetCodes: Int64 = 0
        package var knownDevices: Int64 = 0
    }

    private let place: StorePlace
    private let rows: RowAuthenticator

    package init(at place: StorePlace, authenticatingBy rows: RowAuthenticator) {
        (self.place, self.rows) = (place, rows)
    }

    private func open() -> SQLStore {
        switch place {
        case .sqlite(let path): SQLStore(path: path, inspecting: .header, rows: rows)
        case .postgreSQL(let address): SQLStore(address, rows: rows)
        }
    }

    /// Ends all sessions, removes upload tickets and codes, which may have been used since, and known
    /// devices, which may have been forgotten since, and makes the store expect a replay guard that is
    /// not there, so that the next one refuses earlier signatures. `restored` is the time if the copy was
    /// put in the place of the store: heads that nodes have followed before do not count any more. All of it
    /// is one transaction, with its record. `now` is in whole Unix seconds.
    package func run(
        at now: Int64, inPlace restored: Int64? = nil, recording draft: (Ended) -> AuditDraft
    ) throws(OperationalError) -> Ended {
        let store = open()
        defer { store.close() }
        return try store.change { (database) throws(OperationalError) in
            var ended = Ended()
            ended.sessions = Int64(
                try SQLStore.end(.all, with: SessionTermination(.restored, at: now), in: database).count)
            ended.uploadTickets = Int64(try database.run("DELETE FROM upload_ticket"))
            ended.knownDevices = Int64(try database.run("DELETE FROM known_device"))
            ended.resetCodes = Int64(
                try database.run(
                    """
                    UPDATE account SET reset_codes = NULL WHERE reset_codes IS NOT NULL
                    """))
            try database.run("DELETE FROM account_code")
            let absent = Hex.encode(SystemRandom().bytes(16).span)
            try SQLStore.set(.replayFile, to: Array(absent.utf8), in: database)
            if let restored {
                database.recorder.pending.restored = restored
                try database.run(
                    "DELETE FROM meta WHERE name = ?", binding: .text(MetaName.reportedHead.rawValue))
            }
            try SQLStore.add(draft(ended), to: database)
            return ended
        }
    }

    /// Reserves the erased names and user ids of another store of the same deployment, whose rows are
    /// verified; returns how many were not reserved.
    package func addErasedNames(of former: StorePlace) throws(OperationalError) -> Int64 {
        let source = StoreRestoration(at: former, authenticatingBy: rows).open()
        defer { source.close() }
        let names = try source.read(whenEmpty: []) { (database) throws(OperationalError) in
            try database.rows("SELECT app, tombstone FROM erased_name") { ($0.text(0), $0.blob(1)) }
        }
        let store = open()
        defer { store.close() }
        return try store.change { (database) throws(OperationalError) in
            var added: Int64 = 0
            for (app, tombstone) in names {
                added += Int64(
                    try database.run(
                        """
                        INSERT INTO erased_name (app, tombstone)
                        SELECT name, ? FROM app WHERE name = ? ON CONFLICT DO NOTHING
                        """, binding: .blob(tombstone), .text(app)))
            }
            return added
        }
    }
}
