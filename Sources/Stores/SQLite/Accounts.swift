import CountersignAuthority
import CountersignGate
import CountersignSchemes
import CountersignWire

extension SQLiteStore {
    package func account(_ name: AccountName, of app: AppName) throws(Fault) -> Account? {
        try read(whenEmpty: nil) { (database) throws(Fault) in
            try AccountRows.read(
                database, AccountRows.select + " WHERE app = ? AND name = ?", .text(app.description),
                .text(name.description)
            ).first
        }
    }

    package func account(_ number: Int64) throws(Fault) -> Account? {
        try read(whenEmpty: nil) { (database) throws(Fault) in try AccountRows.account(number, in: database) }
    }

    package func accounts(of app: AppName, after number: Int64, limit: Int) throws(Fault) -> [Account] {
        try read(whenEmpty: []) { (database) throws(Fault) in
            try AccountRows.read(
                database, AccountRows.select + " WHERE app = ? AND number > ? ORDER BY number LIMIT ?",
                .text(app.description), .integer(number), .integer(Int64(limit)))
        }
    }

    package func insert(_ account: AccountDraft, recording draft: AuditDraft) throws(Fault) -> AccountInserted {
        try write(recording: draft) { (database) throws(Fault) in try SQLiteStore.insert(account, in: database) }
    }

    package func insert(
        _ accounts: [AccountDraft], recording draft: AuditDraft
    ) throws(Fault) -> [Int: AccountConflict] {
        try write { (database) throws(Fault) in
            var conflicts: [Int: AccountConflict] = [:]
            for (index, account) in accounts.enumerated() {
                if case .taken(let conflict) = try SQLiteStore.insert(account, in: database) {
                    conflicts[index] = conflict
                }
            }
            if conflicts.count < accounts.count { try SQLiteStore.add(draft, to: database) }
            return conflicts
        }
    }

    private static func insert(_ draft: AccountDraft, in database: Database) throws(Fault) -> AccountInserted {
        var account = Account(
            number: 0, app: draft.app, name: draft.name, userID: draft.userID, created: draft.created)
        account.registration = draft.registration
        account.legacy = draft.legacy
        let (app, name) = (SQLValue.text(draft.app.description), SQLValue.text(draft.name.description))
        guard try database.integer("SELECT 1 FROM account WHERE app = ? AND name = ?", app, name) == nil else {
            return .taken(.name)
        }
        if draft.legacy != nil, draft.userID == nil { account.userID = try nextUserID(of: draft.app, in: database) }
        let added = try database.run(
            """
            INSERT INTO account (app, name, user_id, created, state, credential, sealed_record, rung, sealed_legacy)
            VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?) ON CONFLICT DO NOTHING
            """, app, name, .optional(account.userID), .integer(account.created), .text(account.state.rawValue),
            .optional(account.registration?.credential), .optional(account.registration?.sealedRecord),
            .optional(account.legacy?.rung.rawValue), .optional(account.legacy?.sealed))
        guard added == 1 else { return .taken(.userID) }
        account.number = database.lastRow
        return .yes(account)
    }

    /// One more than the highest that the app has given to anybody, removed accounts included: a backend knows them still.
    static func nextUserID(of app: AppName, in database: Database) throws(Fault) -> Int64 {
        let highest = try database.integer(
            "SELECT max(user_id) FROM account WHERE app = ? AND user_id IS NOT NULL", .text(app.description))
        let (next, isOver) = max(highest ?? 0, 0).addingReportingOverflow(1)
        guard !isOver else { throw Fault(.failed, "app \(app): its highest user id is the highest there can be") }
        return next
    }

    package func knownDevice(_ id: [UInt8], of account: Int64) throws(Fault) -> KnownDevice? {
        try read(whenEmpty: nil) { (database) throws(Fault) in
            try database.rows(
                "SELECT signing_key, last_seen FROM known_device WHERE account = ? AND id = ?", .integer(account),
                .blob(id)
            ) { KnownDevice(id: id, signingKey: $0.blob(0), lastSeen: $0.integer(1)) }.first
        }
    }

    /// Devices that an account is known on: the newest, and the one that has just signed in whatever the clock says.
    static func remember(_ device: KnownDevice, of account: Int64, in database: Database) throws(Fault) {
        try database.run(
            """
            INSERT INTO known_device (account, id, signing_key, last_seen) VALUES (?, ?, ?, ?)
            ON CONFLICT DO UPDATE SET last_seen = excluded.last_seen
            """, .integer(account), .blob(device.id), .blob(device.signingKey), .integer(device.lastSeen))
        try database.run(
            """
            DELETE FROM known_device WHERE account = ?1 AND id IN (
                SELECT id FROM known_device WHERE account = ?1 ORDER BY id = ?2 DESC, last_seen DESC, id
                LIMIT -1 OFFSET ?3)
            """, .integer(account), .blob(device.id), .integer(Int64(KnownDevice.mostOfAccount)))
    }
}
