import CountersignGate
import CountersignSchemes
import CountersignSeal
import CountersignWire

/// Imports an existing backend's accounts in batches. Each value is wrapped before it is written, by as
/// many concurrent tasks as there are cores. A batch is durable, and recorded in the audit log, when
/// ``add(_:at:wrapped:)`` returns.
package struct AccountImport: Sendable {
    /// Rows that are written together, and the most that an interrupted import may have to wrap again.
    package static let batch = 512

    private let deployment: Deployment
    private let app: AppName
    private let cost: HashCost

    /// Fails if there is no such app, or if a name might be free only because a row is missing.
    package init(_ deployment: Deployment, into app: AppName, cost: HashCost = .standard)
        throws(OperationalError)
    {
        self.deployment = deployment
        self.app = try deployment.app(app).name
        try deployment.store.verifyNames()
        self.cost = cost
    }

    /// The result of a batch.
    package struct Outcome: Sendable, Equatable {
        package var taken = 0
        /// Rows that exist with the same user id and rung: an import may be repeated.
        package var present = 0
        package var errors: [ImportError] = []
    }

    /// Whether the row can be added, judging by the stored accounts.
    private enum Availability {
        case free
        case present
        case taken(ImportError)
    }

    /// Reports what importing the batch would do, without writing or wrapping anything.
    package func check(_ accounts: [ImportedAccount]) throws(OperationalError) -> Outcome {
        var outcome = Outcome()
        for account in accounts {
            switch try place(of: account) {
            case .free: outcome.taken += 1
            case .present: outcome.present += 1
            case .taken(let problem): outcome.errors.append(problem)
            }
        }
        return outcome
    }

    /// `wrapped` is called for each wrapped row, on any thread. `now` is in whole Unix seconds.
    @concurrent package func add(
        _ accounts: [ImportedAccount], at now: Int64, wrapped: @escaping @Sendable () -> Void
    ) async throws(OperationalError) -> Outcome {
        var outcome = Outcome()
        var free: [ImportedAccount] = []
        for account in accounts {
            switch try place(of: account) {
            case .free: free.append(account)
            case .present: outcome.present += 1
            case .taken(let problem): outcome.errors.append(problem)
            }
        }
        let drafts = try await drafts(of: free, at: now, wrapped: wrapped)
        guard let first = accounts.first, let last = accounts.last, !drafts.isEmpty else { return outcome }
        let told: [(name: String, value: JSONValue)] = [
            ("lines", .string("\(first.line)-\(last.line)")), ("rows", .integer(Int64(drafts.count))),
        ]
        let conflicts = try deployment.store.insert(
            drafts, recording: deployment.auditDraft(for: .accountImport, on: .app(app), details: told))
        outcome.taken += drafts.count - conflicts.count
        for (index, conflict) in conflicts.sorted(by: { $0.key < $1.key }) {
            outcome.errors.append(AccountImport.importError(for: free[index], conflict: conflict))
        }
        return outcome
    }

    /// Wraps each value. As many tasks run at once as there are cores, which bounds the memory.
    private func drafts(
        of accounts: [ImportedAccount], at now: Int64, wrapped: @escaping @Sendable () -> Void
    ) async throws(OperationalError) -> [AccountDraft] {
        let tombstones = try deployment.tombstoneKey()
        let results = await withTaskGroup(of: (Int, AccountDraft?).self) { group in
            for (index, account) in accounts.enumerated() {
                group.addTask {
                    let draft = draft(of: account, under: tombstones, at: now)
                    wrapped()
                    return (index, draft)
                }
            }
            return await group.reduce(into: [AccountDraft?](repeating: nil, count: accounts.count)) {
                $0[$1.0] = $1.1
            }
        }
        let drafts = results.compactMap(\.self)
        guard drafts.count == accounts.count else {
            throw OperationalError(.failed, message: "not enough memory for one password hash")
        }
        return drafts
    }

    /// Nil if memory does not suffice.
    private func draft(
        of account: ImportedAccount, under tombstones: AccountTombstoneKey, at now: Int64
    ) -> AccountDraft? {
        var draft = AccountDraft(
            app: app, name: account.name, userID: account.userID.number,
            created: now,
            tombstones: tombstones.tombstones(of: account.name, userID: account.userID.number, in: app))
        draft.legacy = try? LegacyCredential(
            keeping: account.value, on: account.rung, of: LegacyAccountID(app: app, name: account.name),
            under: deployment.masterKey, cost: cost)
        return draft.legacy == nil ? nil : draft
    }

    private func place(of account: ImportedAccount) throws(OperationalError) -> Availability {
        guard let found = try deployment.store.account(account.name, of: app) else { return .free }
        guard found.userID == account.userID.number, found.state != .removed else {
            return .taken(AccountImport.importError(for: account, conflict: .name))
        }
        // An account that has left the ladder since is not put back on it.
        if found.registration != nil || found.legacy?.rung == account.rung { return .present }
        let rung = found.legacy?.rung.rawValue ?? "none"
        return .taken(
            ImportError(
                line: account.line, column: .rung, reason: "the account exists on another rung: \(rung)"))
    }

    private static func importError(for account: ImportedAccount, conflict: AccountConflict) -> ImportError {
        switch conflict {
        case .name:
            ImportError(
                line: account.line, column: .name, reason: "taken: another account has, or had, this name")
        case .userID:
            ImportError(
                line: account.line, column: .userID,
                reason: "taken: another account has, or had, this user id")
        }
    }
}
