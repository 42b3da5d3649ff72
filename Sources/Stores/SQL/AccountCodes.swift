import CountersignAuthority
import CountersignGate
import CountersignWire

extension SQLStore {
    package func accountCodes(of account: Int64) throws(OperationalError) -> [StoredAccountCode] {
        try read(whenEmpty: []) { (database) throws(OperationalError) in
            try SQLStore.codes(
                in: database, where: "account = ? ORDER BY purpose", binding: .integer(account))
        }
    }

    package func add(
        _ code: StoredAccountCode, of account: Int64, at now: Int64, recording draft: AuditDraft
    ) throws(OperationalError) -> AccountCodeInsertOutcome {
        try write(recording: draft) { (database) throws(OperationalError) in
            guard try SQLStore.isActive(account, in: database) else { return .missing }
            let purpose = SQLValue.text(code.purpose.description)
            try database.run(
                "DELETE FROM account_code WHERE account = ? AND (purpose = ? OR expires <= ?)",
                binding: .integer(account), purpose, .integer(now))
            let count = try database.integer(
                "SELECT count(*) FROM account_code WHERE account = ?", binding: .integer(account))
            guard count ?? 0 < StoredAccountCode.mostOfAccount else { return .full }
            try database.run(
                """
                INSERT INTO account_code (account, purpose, digest, expires, tries, tag)
                VALUES (?, ?, ?, ?, ?, ?)
                """, binding: .integer(account), purpose, .blob(code.digest), .integer(code.expires),
                .integer(code.triesLeft), .blob(code.tag))
            return .yes
        }
    }

    package func redeem(
        _ attempt: AccountCodeAttempt, recording draft: (AccountCodeAttempt.Verdict) -> AuditDraft?
    ) throws(OperationalError) -> AccountCodeAttempt.Verdict {
        try write { (database) throws(OperationalError) in
            let account = SQLValue.integer(attempt.account)
            let purpose = SQLValue.text(attempt.purpose.description)
            guard try SQLStore.isActive(attempt.account, in: database) else { return .none }
            let found = try SQLStore.codes(
                in: database, where: "account = ? AND purpose = ?", binding: account, purpose)
            let verdict = attempt.verdict(by: found.first)
            switch verdict {
            case .right:
                try SQLStore.forgetCode(of: attempt.account, for: attempt.purpose, in: database)
                if let verification = attempt.verification {
                    try SQLStore.add(verification, of: attempt.account, in: database)
                }
            case .wrong(let tried) where tried.triesLeft > 0:
                try database.run(
                    "UPDATE account_code SET tries = ?, tag = ? WHERE account = ? AND purpose = ?",
                    binding: .integer(tried.triesLeft), .blob(tried.tag), account, purpose)
            case .wrong: try SQLStore.forgetCode(of: attempt.account, for: attempt.purpose, in: database)
            case .none: break
            }
            if let draft = draft(verdict) { try SQLStore.add(draft, to: database) }
            return verdict
        }
    }

    package func forgetAccountCodes(
        expiredBefore time: TrustedTime, limit: Int
    ) throws(OperationalError) -> Int {
        try write { (database) throws(OperationalError) in
            try database.run(
                """
                DELETE FROM account_code WHERE (account, purpose) IN (
                    SELECT account, purpose FROM account_code WHERE expires < ? ORDER BY expires LIMIT ?)
                """, binding: .integer(time.seconds), .integer(Int64(limit)))
        }
    }

    package func verification(of account: Int64) throws(OperationalError) -> StoredVerification? {
        try read(whenEmpty: nil) { (database) throws(OperationalError) in
            try database.rows(
                "SELECT verified, tag FROM account_verification WHERE account = ?",
                binding: .integer(account)
            ) { StoredVerification(verified: $0.integer(0), tag: $0.blob(1)) }.first
        }
    }

    package func verifications(
        of app: AppName, numbered range: ClosedRange<Int64>
    ) throws(OperationalError) -> [Int64: StoredVerification] {
        try read(whenEmpty: [:]) { (database) throws(OperationalError) in
            let rows = try database.rows(
                """
                SELECT number, verified, tag FROM account
                JOIN account_verification ON account_verification.account = account.number
                WHERE app = ? AND state <> 'removed' AND number BETWEEN ? AND ?
                """, binding: .text(app.description), .integer(range.lowerBound), .integer(range.upperBound)
            ) { ($0.integer(0), StoredVerification(verified: $0.integer(1), tag: $0.blob(2))) }
            return Dictionary(rows) { first, _ in first }
        }
    }

    package func set(
        _ verification: StoredVerification?, of account: Int64, recording draft: AuditDraft
    ) throws(OperationalError) -> ChangeOutcome {
        try write(recording: draft) { (database) throws(OperationalError) in
            guard try SQLStore.remains(account, in: database) else { return .missing }
            if let verification {
                try SQLStore.add(verification, of: account, in: database)
                return .yes
            }
            let count = try database.run(
                "DELETE FROM account_verification WHERE account = ?", binding: .integer(account))
            return count > 0 ? .yes : .missing
        }
    }

    private static func add(
        _ verification: StoredVerification, of account: Int64, in database: Database
    ) throws(OperationalError) {
        try database.run(
            """
            INSERT INTO account_verification (account, verified, tag) VALUES (?, ?, ?)
            ON CONFLICT (account) DO UPDATE SET verified = excluded.verified, tag = excluded.tag
            """, binding: .integer(account), .integer(verification.verified), .blob(verification.tag))
    }

    private static func forgetCode(
        of account: Int64, for purpose: CodePurpose, in database: Database
    ) throws(OperationalError) {
        try database.run(
            "DELETE FROM account_code WHERE account = ? AND purpose = ?", binding: .integer(account),
            .text(purpose.description))
    }

    /// For accounts that are removed or erased.
    static func forgetCodes(of account: Int64, in database: Database) throws(OperationalError) {
        try forgetOpenCodes(of: account, in: database)
        try database.run("DELETE FROM account_verification WHERE account = ?", binding: .integer(account))
    }

    static func forgetOpenCodes(of account: Int64, in database: Database) throws(OperationalError) {
        try database.run("DELETE FROM account_code WHERE account = ?", binding: .integer(account))
    }

    private static func remains(_ account: Int64, in database: Database) throws(OperationalError) -> Bool {
        guard let account = try AccountRows.account(account, in: database) else { return false }
        return account.state != .removed
    }

    private static func isActive(_ account: Int64, in database: Database) throws(OperationalError) -> Bool {
        try AccountRows.account(account, in: database)?.state == .active
    }

    /// Rows with a malformed purpose were altered, and are skipped.
    private static func codes(
        in database: Database, where condition: String, binding values: SQLValue...
    ) throws(OperationalError) -> [StoredAccountCode] {
        try database.rows(
            "SELECT purpose, digest, expires, tries, tag FROM account_code WHERE \(condition)",
            binding: values
        ) { row in
            CodePurpose(row.text(0)).map {
                StoredAccountCode(
                    purpose: $0, digest: row.blob(1), expires: row.integer(2), triesLeft: row.integer(3),
                    tag: row.blob(4))
            }
        }.compactMap { $0 }
    }
}
