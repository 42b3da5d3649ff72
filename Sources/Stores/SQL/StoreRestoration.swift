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

    /// The transaction of a restoration.
    package struct Transaction {
        fileprivate let database: Database

        /// The store within the transaction.
        package var store: any Store { SQLStore(within: database) }

        /// Reserves erased names and user ids; returns how many were not reserved.
        package func add(
            erasedNames names: [(app: String, tombstone: [UInt8])]
        ) throws(OperationalError) -> Int64 {
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
    /// devices, which may have been forgotten since, and makes the store expect a replay guard that is not
    /// there, so that the next one refuses earlier signatures. `restoration` is there if the copy was put
    /// in the place of the store: heads that nodes have followed before do not count any more. With `lost`,
    /// only what those changes concern is ended. `endAgain` ends again what is known to have ended. All of
    /// it is one transaction, with its record. `now` is in whole Unix seconds.
    package func run(
        at now: Int64, inPlace restoration: AcceptedRestoration? = nil, ending lost: LostChanges? = nil,
        repeating endAgain: (Transaction) throws(OperationalError) -> Void = { _ in },
        recording draft: (Ended) -> AuditDraft
    ) throws(OperationalError) -> Ended {
        let store = open()
        defer { store.close() }
        return try store.change { (database) throws(OperationalError) in
            let ended =
                if let lost {
                    try StoreRestoration.end(lost, at: now, in: database)
                } else {
                    try StoreRestoration.endAll(at: now, in: database)
                }
            let absent = Hex.encode(SystemRandom().bytes(16).span)
            try SQLStore.set(.replayFile, to: Array(absent.utf8), in: database)
            if let restoration { try accept(restoration, in: database) }
            try SQLStore.add(draft(ended), to: database)
            try endAgain(Transaction(database: database))
            return ended
        }
    }

    /// Makes the store, which was not put back, the deployment's own again: heads that nodes have followed
    /// before do not count any more, and nothing is ended.
    package func accept(
        _ restoration: AcceptedRestoration, recording draft: AuditDraft
    ) throws(OperationalError) {
        let store = open()
        defer { store.close() }
        try store.change { (database) throws(OperationalError) in
            try accept(restoration, in: database)
            try SQLStore.add(draft, to: database)
        }
    }

    private func accept(
        _ restoration: AcceptedRestoration, in database: Database
    ) throws(OperationalError) {
        try SQLStore.set(.restoredInPlace, to: rows.seal(restoration), in: database)
        // Carried to another state of the store, the value does not count.
        database.recorder.pending.restored = restoration.time
        try database.run(
            "DELETE FROM meta WHERE name = ?", binding: .text(MetaName.reportedHead.rawValue))
    }

    private static func endAll(at now: Int64, in database: Database) throws(OperationalError) -> Ended {
        var ended = Ended()
        ended.sessions = Int64(
            try SQLStore.end(.all, with: SessionTermination(.restored, at: now), in: database).count)
        ended.uploadTickets = Int64(try database.run("DELETE FROM upload_ticket"))
        ended.knownDevices = Int64(try database.run("DELETE FROM known_device"))
        ended.resetCodes = Int64(
            try database.run("UPDATE account SET reset_codes = NULL WHERE reset_codes IS NOT NULL"))
        try database.run("DELETE FROM account_code")
        return ended
    }

    private static func end(
        _ lost: LostChanges, at now: Int64, in database: Database
    ) throws(OperationalError) -> Ended {
        var ended = Ended()
        for removal in lost.removals {
            let keys = removal.values.sorted { $0.key < $1.key }
            let values = keys.map { (_, value) -> SQLValue in
                switch value {
                case .integer(let number): .integer(number)
                case .bytes(let bytes): .blob(bytes)
                }
            }
            guard removal.table != .session else {
                let live = try SessionRows.ids(
                    in: database, sql: "SELECT id FROM session WHERE id = ? AND ended_at IS NULL",
                    binding: values[0])
                for id in live {
                    _ = try SQLStore.end(id, with: SessionTermination(.restored, at: now), in: database)
                }
                ended.sessions += Int64(live.count)
                continue
            }
            let condition = keys.map { "\($0.key) = ?" }.joined(separator: " AND ")
            let count = Int64(
                try database.run("DELETE FROM \(removal.table.name) WHERE \(condition)", binding: values))
            switch removal.table {
            case .uploadTicket: ended.uploadTickets += count
            case .knownDevice: ended.knownDevices += count
            default: break
            }
        }
        for number in lost.accounts.keys.sorted() {
            ended.resetCodes += Int64(
                try database.run(
                    "UPDATE account SET reset_codes = NULL WHERE reset_codes IS NOT NULL AND number = ?",
                    binding: .integer(number)))
        }
        return ended
    }

    /// The erased names and user ids of the store.
    package func erasedNames() throws(OperationalError) -> [(app: String, tombstone: [UInt8])] {
        let store = open()
        defer { store.close() }
        return try store.read(whenEmpty: []) { (database) throws(OperationalError) in
            try database.rows("SELECT app, tombstone FROM erased_name") {
                (app: $0.text(0), tombstone: $0.blob(1))
            }
        }
    }
}
