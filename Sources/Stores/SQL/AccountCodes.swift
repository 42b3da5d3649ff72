import CountersignAuthority
import CountersignGate
import CountersignWire

extension SQLStore {
    package func accountCodes(of account: Int64) throws(OperationalError) -> [StoredAccountCode] {
        try read(whenEmpty: []) { (database) throws(OperationalError) in
            try SQLStore.codes(
                in: database, where: "account = ? ORDER BY purpose, made, id", binding: .integer(account))
        }
    }

    package func add(
        _ code: StoredAccountCode, of account: Int64, at now: Int64, recording draft: AuditDraft
    ) throws(OperationalError) -> AccountCodeInsertOutcome {
        try write(recording: draft) { (database) throws(OperationalError) in
            guard try SQLStore.isActive(account, in: database) else { return .missing }
            let others = try SQLStore.codes(in: database, where: "account = ?", binding: .integer(account))
            let same = others.filter { $0.purpose == code.purpose }.map { $0.entry(at: now) }
            if let refusal = CodePace.refusal(after: same, at: now) { return .refused(refusal) }
            let good = others.filter { $0.isGood(at: now) && $0.purpose != code.purpose }
            guard Set(good.map(\.purpose)).count < StoredAccountCode.mostPurposes else { return .full }
            try database.run(
                """
                INSERT INTO account_code (account, id, purpose, digest, made, expires, tries)
                VALUES (?, ?, ?, ?, ?, ?, ?)
                """, binding: .integer(account), .blob(code.id.bytes), .text(code.purpose.description),
                .blob(code.digest), .integer(code.made), .integer(code.expires), .integer(code.triesLeft))
            return .yes
        }
    }

    package func redeem(
        _ attempt: AccountCodeAttempt, recording draft: (AccountCodeAttempt.Verdict) -> AuditDraft?
    ) throws(OperationalError) -> AccountCodeAttempt.Verdict {
        try write { (database) throws(OperationalError) in
            let account = SQLValue.integer(attempt.account)
            guard try SQLStore.isActive(attempt.account, in: database) else { return .none }
            let found = try SQLStore.codes(in: database, where: "account = ?", binding: account)
            let guesses = attempt.id == nil ? try SQLStore.guesses(for: attempt, in: database) : nil
            let verdict = attempt.verdict(by: found, after: guesses)
            switch verdict {
            case .right:
                // A code that was used and put back is authentic.
                try database.recorder.requireGroup(
                    ofAccount: attempt.account, of: [.accountCode], in: database)
                // The budget of attempts without an id stays.
                try database.run(
                    "DELETE FROM account_code WHERE account = ? AND purpose = ? AND id <> ?",
                    binding: account, .text(attempt.purpose.description),
                    .blob(AccountCodeID.unnamedGuesses(at: attempt.purpose).bytes))
                if let time = attempt.verified {
                    try SQLStore.add(verification: time, of: attempt.account, in: database)
                }
            case .wrong(let code):
                try database.run(
                    "UPDATE account_code SET tries = ? WHERE account = ? AND id = ?",
                    binding: .integer(code.triesLeft), account, .blob(code.id.bytes))
            case .wrongWithoutID(let guesses): try SQLStore.set(guesses, for: attempt, in: database)
            case .none, .exhausted: break
            }
            if let draft = draft(verdict) { try SQLStore.add(draft, to: database) }
            return verdict
        }
    }

    /// The budget of attempts without an id is a row beside the codes, without a digest.
    private static func guesses(
        for attempt: AccountCodeAttempt, in database: Database
    ) throws(OperationalError) -> UnnamedGuesses? {
        try database.rows(
            """
            SELECT made, tries, \(AuthenticatedTable.accountCode.check) FROM account_code
            WHERE account = ? AND id = ?
            """, binding: .integer(attempt.account),
            .blob(AccountCodeID.unnamedGuesses(at: attempt.purpose).bytes)
        ) { row -> UnnamedGuesses? in
            // An altered row gives no budget back.
            let left = row.isAuthentic(2) ? row.integer(1) : 0
            return UnnamedGuesses(left: left, since: row.integer(0))
        }.first ?? nil
    }

    private static func set(
        _ guesses: UnnamedGuesses, for attempt: AccountCodeAttempt, in database: Database
    ) throws(OperationalError) {
        let (account, id) = (
            SQLValue.integer(attempt.account),
            SQLValue.blob(AccountCodeID.unnamedGuesses(at: attempt.purpose).bytes)
        )
        try database.run(
            "DELETE FROM account_code WHERE account = ? AND id = ?", binding: account, id)
        try database.run(
            """
            INSERT INTO account_code (account, id, purpose, digest, made, expires, tries)
            VALUES (?, ?, ?, ?, ?, ?, ?)
            """, binding: account, id, .text(attempt.purpose.description), .blob([]),
            .integer(guesses.since), .integer(guesses.since), .integer(guesses.left))
    }

    package func forgetAccountCodes(
        madeBefore time: TrustedTime, limit: Int
    ) throws(OperationalError) -> Int {
        try write { (database) throws(OperationalError) in
            try database.run(
                """
                DELETE FROM account_code WHERE (account, id) IN (
                    SELECT account, id FROM account_code WHERE made < ? ORDER BY made LIMIT ?)
                """, binding: .integer(time.seconds), .integer(Int64(limit)))
        }
    }

    package func verification(of account: Int64) throws(OperationalError) -> Int64? {
        try read(whenEmpty: nil) { (database) throws(OperationalError) in
            try database.rows(
                """
                SELECT verified, \(AuthenticatedTable.accountVerification.check) FROM account_verification
                WHERE account = ?
                """, binding: .integer(account)
            ) { $0.isAuthentic(1) ? $0.integer(0) : nil }.first ?? nil
        }
    }

    package func verifications(
        of app: AppName, numbered range: ClosedRange<Int64>
    ) throws(OperationalError) -> [Int64: Int64] {
        try read(whenEmpty: [:]) { (database) throws(OperationalError) in
            let rows = try database.rows(
                """
                SELECT number, verified, \(AuthenticatedTable.accountVerification.check) FROM account
                JOIN account_verification ON account_verification.account = account.number
                WHERE app = ? AND state <> 'removed' AND number BETWEEN ? AND ?
                """, binding: .text(app.description), .integer(range.lowerBound), .integer(range.upperBound)
            ) { $0.isAuthentic(2) ? ($0.integer(0), $0.integer(1)) : nil }
            return Dictionary(rows.compactMap { $0 }) { first, _ in first }
        }
    }

    package func set(
        verification: Int64?, of account: Int64, recording draft: AuditDraft
    ) throws(OperationalError) -> ChangeOutcome {
        try write(recording: draft) { (database) throws(OperationalError) in
            guard try SQLStore.remains(account, in: database) else { return .missing }
            if let verification {
                try SQLStore.add(verification: verification, of: account, in: database)
                return .yes
            }
            let count = try database.run(
                "DELETE FROM account_verification WHERE account = ?", binding: .integer(account))
            return count > 0 ? .yes : .missing
        }
    }

    private static func add(
        verification: Int64, of account: Int64, in database: Database
    ) throws(OperationalError) {
        // Replaces an altered row, too.
        try database.run("DELETE FROM account_verification WHERE account = ?", binding: .integer(account))
        try database.run(
            "INSERT INTO account_verification (account, verified) VALUES (?, ?)", binding: .integer(account),
            .integer(verification))
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

    /// Without altered rows, and without the budgets of attempts without an id.
    private static func codes(
        in database: Database, where condition: String, binding values: SQLValue...
    ) throws(OperationalError) -> [StoredAccountCode] {
        try database.rows(
            """
            SELECT id, purpose, digest, made, expires, tries, \(AuthenticatedTable.accountCode.check)
            FROM account_code WHERE \(condition)
            """, binding: values
        ) { row -> StoredAccountCode? in
            guard row.isAuthentic(6), let id = AccountCodeID(row.blob(0)),
                let purpose = CodePurpose(row.text(1)), id != .unnamedGuesses(at: purpose)
            else { return nil }
            return StoredAccountCode(
                id: id, purpose: purpose, digest: row.blob(2), made: row.integer(3), expires: row.integer(4),
                triesLeft: row.integer(5))
        }.compactMap { $0 }
    }
}
