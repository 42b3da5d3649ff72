import CountersignAuthority
import CountersignGate
import CountersignSchemes
import CountersignWire

extension SQLiteStore {
    package func change(
        _ number: Int64, if expected: AccountExpectation, _ change: AccountChange, at now: Int64,
        recording draft: AuditDraft
    ) throws(Fault) -> AccountChanged {
        try write(recording: draft) { (database) throws(Fault) in
            guard let account = try AccountRows.account(number, in: database), account.state != .removed,
                expected.holds(of: account, at: now)
            else { return .missing }
            try SQLiteStore.apply(change, to: account, in: database)
            guard let (reason, kept) = change.ends else { return .yes(ended: []) }
            let ended = try SQLiteStore.end(
                .account(number, except: kept), SessionEnd(reason, at: now), in: database)
            return .yes(ended: ended)
        }
    }

    private static func apply(_ change: AccountChange, to account: Account, in database: Database) throws(Fault) {
        let number = SQLValue.integer(account.number)
        switch change {
        case .lock: try set(.locked, account.number, in: database)
        case .unlock: try set(.active, account.number, in: database)
        case .remove:
            try set(.removed, account.number, in: database)
            try database.run(
                """
                UPDATE account SET credential = NULL, sealed_record = NULL, rung = NULL, sealed_legacy = NULL,
                    reset_hash = NULL, reset_until = NULL
                WHERE number = ?
                """, number)
            try forgetDevices(of: account.number, in: database)
        case .register(let registration, keeping: let session):
            try database.run(
                """
                UPDATE account SET credential = ?, sealed_record = ?, rung = NULL, sealed_legacy = NULL,
                    reset_hash = NULL, reset_until = NULL
                WHERE number = ?
                """, .blob(registration.credential), .blob(registration.sealedRecord), number)
            try forgetDevices(of: account.number, but: session, in: database)
        case .upgrade(let registration):
            try database.run(
                "UPDATE account SET credential = ?, sealed_record = ?, rung = NULL, sealed_legacy = NULL WHERE number = ?",
                .blob(registration.credential), .blob(registration.sealedRecord), number)
        case .legacy(let credential), .legacyPassword(let credential, keeping: _):
            // Who signs in by the ladder is told to the backend by a number.
            let userID = if let id = account.userID { id } else { try nextUserID(of: account.app, in: database) }
            try database.run(
                """
                UPDATE account SET rung = ?, sealed_legacy = ?, user_id = ?, credential = NULL, sealed_record = NULL,
                    reset_hash = NULL, reset_until = NULL
                WHERE number = ?
                """, .text(credential.rung.rawValue), .blob(credential.sealed), .integer(userID), number)
            try forgetDevices(of: account.number, in: database)
        case .setReset(let reset):
            try database.run(
                "UPDATE account SET reset_hash = ?, reset_until = ? WHERE number = ?", .optional(reset?.codeHash),
                .optional(reset?.until), number)
        }
    }

    /// They signed in by a password that is gone, and perhaps because somebody else had it. `session` is one whose device stays.
    private static func forgetDevices(
        of account: Int64, but session: SessionID? = nil, in database: Database
    ) throws(Fault) {
        var kept: [UInt8] = []
        if let session, let row = try SessionRows.session(session, in: database), row.account == account,
            case .device(let device) = row.credentials
        {
            kept = KnownDevice(signingKey: device.signingKey, lastSeen: row.used).id
        }
        try database.run(
            "DELETE FROM known_device WHERE account = ? AND id <> ?", .integer(account), .blob(kept))
    }

    private static func set(_ state: Account.State, _ number: Int64, in database: Database) throws(Fault) {
        try database.run("UPDATE account SET state = ? WHERE number = ?", .text(state.rawValue), .integer(number))
    }
}

extension AccountChange {
    /// What the account's sessions end of, and which of them stays; nil where all stay.
    fileprivate var ends: (reason: SessionEnd.Reason, kept: SessionID?)? {
        switch self {
        case .lock, .remove: (.disabled, nil)
        case .register(_, keeping: let kept): (.passwordChanged, kept)
        case .legacy: (.passwordChanged, nil)
        case .legacyPassword(_, keeping: let kept): (.passwordChanged, kept)
        case .unlock, .upgrade, .setReset: nil
        }
    }
}
