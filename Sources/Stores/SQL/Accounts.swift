import CountersignAuthority
import CountersignGate
import CountersignHandshake
import CountersignSchemes
import CountersignWire

extension SQLStore {
    package func account(_ name: AccountName, of app: AppName) throws(OperationalError) -> Account? {
        try read(whenEmpty: nil) { (database) throws(OperationalError) in
            try AccountRows.read(
                in: database, sql: AccountRows.select + " WHERE app = ? AND name = ?",
                binding: .text(app.description),
                .text(name.description)
            ).first
        }
    }

    package func account(_ number: Int64) throws(OperationalError) -> Account? {
        try read(whenEmpty: nil) { (database) throws(OperationalError) in
            try AccountRows.account(number, in: database)
        }
    }

    package func accounts(of app: AppName, after number: Int64, limit: Int) throws(OperationalError)
        -> [Account]
    {
        try read(whenEmpty: []) { (database) throws(OperationalError) in
            try AccountRows.read(
                in: database,
                sql: AccountRows.select + " WHERE app = ? AND number > ? ORDER BY number LIMIT ?",
                binding: .text(app.description), .integer(number), .integer(Int64(limit)))
        }
    }

    package func insert(_ account: AccountDraft, recording draft: AuditDraft) throws(OperationalError)
        -> AccountInsertOutcome
    {
        try write(recording: draft) { (database) throws(OperationalError) in
            try SQLStore.insert(account, in: database)
        }
    }

    package func insert(
        _ accounts: [AccountDraft], recording draft: AuditDraft
    ) throws(OperationalError) -> [Int: AccountConflict] {
        try write { (database) throws(OperationalError) in
            var conflicts: [Int: AccountConflict] = [:]
            for (index, account) in accounts.enumerated() {
                if case .taken(let conflict) = try SQLStore.insert(account, in: database) {
                    conflicts[index] = conflict
                }
            }
            if conflicts.count < accounts.count { try SQLStore.add(draft, to: database) }
            return conflicts
        }
    }

    private static func insert(_ draft: AccountDraft, in database: Database) throws(OperationalError)
        -> AccountInsertOutcome
    {
        var account = Account(
            number: 0, app: draft.app, name: draft.name, userID: draft.userID, created: draft.created)
        account.pseudonym = AccountPseudonym()
        account.registration = draft.registration
        account.legacy = draft.legacy
        let (app, name) = (SQLValue.text(draft.app.description), SQLValue.text(draft.name.description))
        guard
            try database.integer("SELECT 1 FROM account WHERE app = ? AND name = ?", binding: app, name)
                == nil
        else {
            return .taken(.name)
        }
        if let tombstones = draft.tombstones {
            try requireReservedNames(in: database)
            guard try !isErased(tombstones.name, of: draft.app, in: database) else { return .taken(.name) }
            if let id = tombstones.userID, try isErased(id, of: draft.app, in: database) {
                return .taken(.userID)
            }
        }
        let number = try database.integer(
            """
            INSERT INTO account (
                app, name, user_id, created, state, credential, sealed_record, rung, sealed_legacy,
                pseudonym)
            VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?) ON CONFLICT DO NOTHING
            RETURNING number
            """, binding: app, name, .optional(account.userID), .integer(account.created),
            .text(account.state.rawValue),
            .optional(account.registration?.credential), .optional(account.registration?.sealedRecord),
            .optional(account.legacy?.rung.rawValue), .optional(account.legacy?.sealed),
            .optional(account.pseudonym?.bytes))
        guard let number else { return .taken(.userID) }
        account.number = number
        return .yes(account)
    }

    package func knownDevice(_ id: [UInt8], of account: Int64) throws(OperationalError) -> KnownDevice? {
        try read(whenEmpty: nil) { (database) throws(OperationalError) in
            try database.rows(
                """
                SELECT signing_key, last_seen, \(AuthenticatedTable.knownDevice.check) FROM known_device
                WHERE account = ? AND id = ?
                """, binding: .integer(account), .blob(id)
            ) { row -> KnownDevice? in
                guard row.isAuthentic(2) else { return nil }
                return KnownDevice(id: id, signingKey: row.blob(0), lastSeen: row.integer(1))
            }.first ?? nil
        }
    }

    package func knownDevices(of account: Int64) throws(OperationalError) -> [KnownDeviceEntry] {
        try read(whenEmpty: []) { (database) throws(OperationalError) in
            try database.rows(
                """
                SELECT id, signing_key, last_seen, class, name, first_seen,
                    \(AuthenticatedTable.knownDevice.check)
                FROM known_device WHERE account = ? ORDER BY last_seen DESC, id
                """, binding: .integer(account)
            ) { row -> KnownDeviceEntry? in
                guard row.isAuthentic(6), let kind = Device.Class(rawValue: row.text(3)) else { return nil }
                return KnownDeviceEntry(
                    device: KnownDevice(id: row.blob(0), signingKey: row.blob(1), lastSeen: row.integer(2)),
                    kind: kind, name: row.text(4), firstSeen: row.integer(5))
            }.compactMap { $0 }
        }
    }

    package func forgetDevice(
        _ id: [UInt8], of account: Int64, recording draft: AuditDraft
    ) throws(OperationalError) -> Bool {
        try write { (database) throws(OperationalError) in
            let isForgotten = try SQLStore.forget(device: id, of: account, in: database)
            if isForgotten { try SQLStore.add(draft, to: database) }
            return isForgotten
        }
    }

    /// False if the account does not know the device.
    static func forget(device id: [UInt8], of account: Int64, in database: Database) throws(OperationalError)
        -> Bool
    {
        try database.run(
            "DELETE FROM known_device WHERE account = ? AND id = ?", binding: .integer(account), .blob(id))
            > 0
    }

    /// Adds or updates a known device of the account, and deletes all but the newest; the device that has
    /// just signed in stays whatever the clock says.
    static func isKnown(
        _ device: KnownDevice, of account: Int64, in database: Database
    ) throws(OperationalError) -> Bool {
        try database.integer(
            "SELECT 1 FROM known_device WHERE account = ? AND id = ?", binding: .integer(account),
            .blob(device.id)) != nil
    }

    static func remember(_ entry: KnownDeviceEntry, of account: Int64, in database: Database)
        throws(OperationalError)
    {
        let device = entry.device
        try database.run(
            """
            INSERT INTO known_device (account, id, signing_key, last_seen, class, name, first_seen)
            VALUES (?, ?, ?, ?, ?, ?, ?)
            ON CONFLICT (account, id) DO UPDATE SET last_seen = excluded.last_seen, class = excluded.class,
                name = excluded.name
            """, binding: .integer(account), .blob(device.id), .blob(device.signingKey),
            .integer(device.lastSeen), .text(entry.kind.rawValue), .text(entry.name),
            .integer(entry.firstSeen))
        try database.run(
            """
            DELETE FROM known_device WHERE account = ?1 AND id IN (
                SELECT id FROM known_device WHERE account = ?1 ORDER BY id = ?2 DESC, last_seen DESC, id
                LIMIT 1000000 OFFSET ?3)
            """, binding: .integer(account), .blob(device.id), .integer(Int64(KnownDevice.mostOfAccount)))
    }
}

extension SQLStore {
    package func change(
        _ number: Int64, if expected: AccountPrecondition, applying change: AccountChange, at now: Int64,
        recording draft: AuditDraft
    ) throws(OperationalError) -> AccountChangeOutcome {
        try write(recording: draft) { (database) throws(OperationalError) in
            guard let account = try AccountRows.account(number, in: database), account.state != .removed,
                expected.holds(of: account, at: now)
            else { return .missing }
            if case .reset = expected {
                // A row with a code that was used since is authentic if it is put back.
                try database.recorder.requireGroup(ofAccount: number, of: [.account], in: database)
            }
            if case .setUserID(_, let reserved?) = change, reserved.formerID != account.userID {
                return .missing
            }
            if case .setUserID(let id?, let reserved) = change {
                try SQLStore.requireReservedNames(in: database)
                if let new = reserved?.new, try SQLStore.isErased(new.id, of: account.app, in: database),
                    try !SQLStore.isErased(new.idOfAccount, of: account.app, in: database)
                {
                    return .taken
                }
                let holder = try database.integer(
                    "SELECT number FROM account WHERE app = ? AND user_id = ?",
                    binding: .text(account.app.description), .integer(id))
                if let holder, holder != number { return .taken }
            }
            if case .addReset(let reset) = change {
                switch account.resets(adding: reset, at: now) {
                case .failure(let refusal): return .refused(refusal)
                case .success(let resets): try SQLStore.set(resets, of: number, in: database)
                }
                return .yes(ended: [])
            }
            try SQLStore.apply(change, to: account, in: database)
            guard let (reason, kept) = change.ends else { return .yes(ended: []) }
            let ended = try SQLStore.end(
                .account(number, except: kept), with: SessionTermination(reason, at: now), by: draft.actor,
                in: database)
            return .yes(ended: ended)
        }
    }

    private static func apply(_ change: AccountChange, to account: Account, in database: Database)
        throws(OperationalError)
    {
        let number = SQLValue.integer(account.number)
        let row = "account \(account.number)"
        switch change {
        case .lock:
            try setState(.locked, of: account.number, in: database)
            try forgetOpenCodes(of: account.number, in: database)
        case .unlock: try setState(.active, of: account.number, in: database)
        case .remove:
            try setState(.removed, of: account.number, in: database)
            try database.run(
                """
                UPDATE account SET credential = NULL, sealed_record = NULL, rung = NULL, sealed_legacy = NULL,
                    reset_codes = NULL
                WHERE number = ?
                """, changing: row, binding: [number])
            try forgetDevices(of: account.number, in: database)
            try forgetCodes(of: account.number, in: database)
        case .register(let registration, keeping: let session):
            try replaceCredentials(of: account.number, by: registration, in: database)
            try forgetDevices(of: account.number, but: session, in: database)
        case .reset(let registration, by: let device):
            try replaceCredentials(of: account.number, by: registration, in: database)
            try forgetDevices(of: account.number, in: database)
            if let device { try remember(device, of: account.number, in: database) }
        case .upgrade(let registration):
            try database.run(
                """
                UPDATE account SET credential = ?, sealed_record = ?, rung = NULL, sealed_legacy = NULL
                WHERE number = ?
                """, changing: row,
                binding: [.blob(registration.credential), .blob(registration.sealedRecord), number])
        case .legacy(let credential), .legacyPassword(let credential, keeping: _):
            try database.run(
                """
                UPDATE account SET rung = ?, sealed_legacy = ?, credential = NULL,
                    sealed_record = NULL, reset_codes = NULL
                WHERE number = ?
                """, changing: row,
                binding: [.text(credential.rung.rawValue), .blob(credential.sealed), number])
            try forgetDevices(of: account.number, in: database)
        case .setUserID(let userID, let reserved):
            if let former = reserved?.former {
                try add(former.id, of: account.app, in: database)
                try add(former.idOfAccount, of: account.app, in: database)
            }
            try database.run(
                "UPDATE account SET user_id = ? WHERE number = ?", changing: row,
                binding: [.optional(userID), number])
        case .replaceResets(let reset): try set([reset], of: account.number, in: database)
        case .addReset: break
        }
    }

    private static func set(
        _ resets: [StoredReset], of account: Int64, in database: Database
    ) throws(OperationalError) {
        try database.run(
            "UPDATE account SET reset_codes = ? WHERE number = ?", changing: "account \(account)",
            binding: [.blob(StoredReset.encode(resets)), .integer(account)])
    }

    private static func replaceCredentials(
        of account: Int64, by registration: StoredRegistration, in database: Database
    ) throws(OperationalError) {
        try database.run(
            """
            UPDATE account SET credential = ?, sealed_record = ?, rung = NULL, sealed_legacy = NULL,
                reset_codes = NULL
            WHERE number = ?
            """, changing: "account \(account)",
            binding: [
                .blob(registration.credential), .blob(registration.sealedRecord), .integer(account),
            ])
    }

    /// Forgets the account's known devices: they signed in with a password that is no longer valid and may
    /// have been stolen. The device of `session` stays.
    private static func forgetDevices(
        of account: Int64, but session: SessionID? = nil, in database: Database
    ) throws(OperationalError) {
        var kept: [UInt8] = []
        if let session, let row = try SessionRows.session(session, in: database), row.account == account,
            case .device(let device) = row.credentials
        {
            kept = KnownDevice(signingKey: device.signingKey, lastSeen: row.used).id
        }
        try database.run(
            "DELETE FROM known_device WHERE account = ? AND id <> ?", binding: .integer(account), .blob(kept))
    }

    private static func setState(_ state: Account.State, of number: Int64, in database: Database)
        throws(OperationalError)
    {
        try database.run(
            "UPDATE account SET state = ? WHERE number = ?", changing: "account \(number)",
            binding: [.text(state.rawValue), .integer(number)])
    }
}

extension AccountChange {
    /// The reason why the account's sessions end, and the session that stays; nil if all stay.
    fileprivate var ends: (reason: SessionTermination.Reason, kept: SessionID?)? {
        switch self {
        case .lock, .remove: (.disabled, nil)
        case .register(_, keeping: let kept): (.passwordChanged, kept)
        case .reset: (.passwordChanged, nil)
        case .legacy: (.passwordChanged, nil)
        case .legacyPassword(_, keeping: let kept): (.passwordChanged, kept)
        case .setUserID: (.revoked, nil)
        case .unlock, .upgrade, .addReset, .replaceResets: nil
        }
    }
}

/// Reads rows of the table of accounts.
enum AccountRows {
    static let select = """
        SELECT number, app, name, user_id, created, state, credential, sealed_record, rung,
            sealed_legacy, reset_codes, pseudonym, \(AuthenticatedTable.account.check)
        FROM account
        """

    static func account(_ number: Int64, in database: Database) throws(OperationalError) -> Account? {
        try read(in: database, sql: select + " WHERE number = ?", binding: .integer(number)).first
    }

    /// `sql` begins with ``select``.
    static func read(in database: Database, sql: String, binding values: SQLValue...) throws(OperationalError)
        -> [Account]
    {
        try list(in: database, sql: sql, binding: values).map { (listed) throws(OperationalError) in
            switch listed {
            case .row(let account): return account
            case .altered(let row): throw SQLStore.altered(.account, row: row.row, in: database)
            }
        }
    }

    /// The same with altered rows in their places. `sql` begins with ``select``.
    static func list(in database: Database, sql: String, binding values: [SQLValue]) throws(OperationalError)
        -> [ListedRow<Account>]
    {
        try database.rows(sql, binding: values) { (row) throws(OperationalError) in
            let number = row.integer(0)
            guard row.isAuthentic(12) else {
                return .altered(AlteredRow(.account, row: String(number), account: number))
            }
            guard let account = account(row) else {
                throw ReleaseRows.unreadable("account", named: String(number), in: database)
            }
            return .row(account)
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
        if !row.isNull(10) {
            guard let resets = StoredReset.decode(row.blob(10)) else { return nil }
            account.resets = resets
        }
        if !row.isNull(11) {
            guard let pseudonym = AccountPseudonym(row.blob(11)) else { return nil }
            account.pseudonym = pseudonym
        }
        return account
    }
}
