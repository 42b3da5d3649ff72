import CountersignGate
import CountersignSchemes
import CountersignSeal
import CountersignWire

/// Takes an old backend's accounts into the store, a batch at a time: each value is wrapped before it is written, by as many
/// tasks as there are cores. A batch is durable, and recorded in the audit log, once ``add(_:_:at:)`` returns.
package struct AccountImport: Sendable {
    /// Rows that are written together: what an import that is broken off may have to wrap again.
    package static let batch = 512

    private let deployment: Deployment
    private let app: AppName
    private let cost: HashCost

    /// Fails where there is no such app.
    package init(_ deployment: Deployment, into app: AppName, cost: HashCost = .standard) throws(Fault) {
        self.deployment = deployment
        self.app = try deployment.app(app).name
        self.cost = cost
    }

    /// What became of a batch.
    package struct Outcome: Sendable, Equatable {
        package var taken = 0
        /// Were there already, with the same user id and rung: an import may be run again.
        package var present = 0
        package var problems: [ImportProblem] = []
    }

    /// Whether the row can be added, as far as what is stored tells.
    private enum Place {
        case free
        case present
        case taken(ImportProblem)
    }

    /// What would become of the batch; nothing is written, and nothing wrapped.
    package func check(_ accounts: [ImportedAccount]) throws(Fault) -> Outcome {
        var outcome = Outcome()
        for account in accounts {
            switch try place(of: account) {
            case .free: outcome.taken += 1
            case .present: outcome.present += 1
            case .taken(let problem): outcome.problems.append(problem)
            }
        }
        return outcome
    }

    /// `wrapped` is told of each row that was, from any thread. `now` is whole Unix seconds.
    @concurrent package func add(
        _ accounts: [ImportedAccount], at now: Int64, wrapped: @escaping @Sendable () -> Void
    ) async throws(Fault) -> Outcome {
        var outcome = Outcome()
        var free: [ImportedAccount] = []
        for account in accounts {
            switch try place(of: account) {
            case .free: free.append(account)
            case .present: outcome.present += 1
            case .taken(let problem): outcome.problems.append(problem)
            }
        }
        let drafts = try await drafts(of: free, at: now, wrapped)
        guard let first = accounts.first, let last = accounts.last, !drafts.isEmpty else { return outcome }
        let told: [(name: String, value: JSONValue)] = [
            ("lines", .string("\(first.line)-\(last.line)")), ("rows", .integer(Int64(drafts.count))),
        ]
        let conflicts = try deployment.store.insert(
            drafts, recording: deployment.recording(.accountImport, .app(app), told))
        outcome.taken += drafts.count - conflicts.count
        for (index, conflict) in conflicts.sorted(by: { $0.key < $1.key }) {
            outcome.problems.append(AccountImport.problem(free[index], conflict))
        }
        return outcome
    }

    /// Each value wrapped. Tasks are many and run as many at once as there are cores, so memory is bounded by these.
    private func drafts(
        of accounts: [ImportedAccount], at now: Int64, _ wrapped: @escaping @Sendable () -> Void
    ) async throws(Fault) -> [AccountDraft] {
        let results = await withTaskGroup(of: (Int, AccountDraft?).self) { group in
            for (index, account) in accounts.enumerated() {
                group.addTask {
                    let draft = draft(of: account, at: now)
                    wrapped()
                    return (index, draft)
                }
            }
            return await group.reduce(into: [AccountDraft?](repeating: nil, count: accounts.count)) { $0[$1.0] = $1.1 }
        }
        let drafts = results.compactMap(\.self)
        guard drafts.count == accounts.count else { throw Fault(.failed, "not enough memory for one password hash") }
        return drafts
    }

    /// Nil where memory does not suffice.
    private func draft(of account: ImportedAccount, at now: Int64) -> AccountDraft? {
        var draft = AccountDraft(app: app, name: account.name, userID: account.userID.number, created: now)
        draft.legacy = try? LegacyCredential(
            keeping: account.value, on: account.rung, of: LegacyAccountID(app: app, name: account.name),
            under: deployment.masterKey, cost: cost)
        return draft.legacy == nil ? nil : draft
    }

    private func place(of account: ImportedAccount) throws(Fault) -> Place {
        guard let found = try deployment.store.account(account.name, of: app) else { return .free }
        guard found.userID == account.userID.number, found.state != .removed else {
            return .taken(AccountImport.problem(account, .name))
        }
        // One that has left the ladder since is not put back on it.
        if found.registration != nil || found.legacy?.rung == account.rung { return .present }
        let rung = found.legacy?.rung.rawValue ?? "none"
        return .taken(
            ImportProblem(line: account.line, column: .rung, reason: "the account is there, on another rung: \(rung)"))
    }

    private static func problem(_ account: ImportedAccount, _ conflict: AccountConflict) -> ImportProblem {
        switch conflict {
        case .name:
            ImportProblem(line: account.line, column: .name, reason: "taken: another account has, or had, this name")
        case .userID:
            ImportProblem(line: account.line, column: .userID, reason: "taken: another account has this user id")
        }
    }
}
