import CountersignAuthority
import CountersignGate
import CountersignThreads
import CountersignWire

/// The limits on guesses, as routes ask them: this process's own, or those that all nodes over one store
/// count together. Times are in milliseconds since 1970; a shared store has its own clock.
struct GuessLimits: Sendable {
    let own: LoginLimits
    /// Nil if the store is this machine's alone.
    let shared: SharedLoginLimits?
    /// The threads that wait for the store.
    let threads: WorkPool
    /// Counts the failed logins of each account.
    let accounts: AccountGuesses

    func start(
        app: AppName, account: AccountName, from caller: LoginLimits.Caller, at now: Int64
    ) async throws(Refusal) -> LoginLimits.Decision {
        let decision = try await decide(app: app, account: account, from: caller, at: now)
        if case .allowed = decision { accounts.didBegin(account, of: app, at: now / 1_000) }
        return decision
    }

    private func decide(
        app: AppName, account: AccountName, from caller: LoginLimits.Caller, at now: Int64
    ) async throws(Refusal) -> LoginLimits.Decision {
        guard let shared else { return own.start(app: app, account: account, from: caller, at: now) }
        return try await ask { () throws(OperationalError) in
            try shared.start(app: app, account: account, from: caller)
        }
    }

    func startSolved(
        app: AppName, account: AccountName, from address: ClientAddress, at now: Int64
    ) async throws(Refusal) -> LoginLimits.Decision {
        let decision = try await decideSolved(app: app, account: account, from: address, at: now)
        if case .allowed = decision { accounts.didBegin(account, of: app, at: now / 1_000) }
        return decision
    }

    private func decideSolved(
        app: AppName, account: AccountName, from address: ClientAddress, at now: Int64
    ) async throws(Refusal) -> LoginLimits.Decision {
        guard let shared else { return own.startSolved(app: app, account: account, from: address, at: now) }
        return try await ask { () throws(OperationalError) in
            try shared.startSolved(app: app, account: account, from: address)
        }
    }

    func startRegistration(
        from address: ClientAddress, at now: Int64
    ) async throws(Refusal) -> LoginLimits.Decision {
        guard let shared else { return own.startRegistration(from: address, at: now) }
        return try await ask { () throws(OperationalError) in try shared.startRegistration(from: address) }
    }

    /// How many solutions of the account are used up; nil if none would be accepted now, or, given an
    /// address, none from there.
    func solutionsUsed(
        app: AppName, account: AccountName, from address: ClientAddress? = nil, at now: Int64
    ) async throws(Refusal) -> Int? {
        guard let shared else {
            return address.map { own.solutionsUsed(app: app, account: account, from: $0, at: now) }
                ?? own.solutionsUsed(app: app, account: account, at: now)
        }
        return try await ask { () throws(OperationalError) in
            guard let address else { return try shared.solutionsUsed(app: app, account: account) }
            return try shared.solutionsUsed(app: app, account: account, from: address)
        }
    }

    /// Refunds the debits of a verified login. A debit that the store does not refund stays counted.
    /// `guessed` is the account of the login; nil for a debit that was not for a guess.
    func refund(
        _ receipt: LoginLimits.Receipt, guessed: (app: AppName, account: AccountName)?, at now: Int64
    ) async {
        if let guessed { accounts.didNotFail(guessed.account, of: guessed.app) }
        own.refund(receipt, at: now)
        guard let shared, !receipt.isOwn else { return }
        try? await ask { () throws(OperationalError) in try shared.refund(receipt) }
    }

    /// Refunds all but what its address is to pay: for a solution that another start used meanwhile.
    func refundAllButAddress(
        _ receipt: LoginLimits.Receipt, guessed: (app: AppName, account: AccountName), at now: Int64
    ) async {
        accounts.didNotFail(guessed.account, of: guessed.app)
        own.refundAllButAddress(receipt, at: now)
        guard let shared, !receipt.isOwn else { return }
        try? await ask { () throws(OperationalError) in try shared.refund(receipt) { $0 != .address } }
    }

    /// Refuses with `unavailable` if the store does not answer: a guess that is not counted is not admitted.
    private func ask<Result: Sendable>(
        _ body: @escaping @Sendable () throws(OperationalError) -> Result
    ) async throws(Refusal) -> Result {
        try await threads.attempt { () throws(Refusal) in
            do throws(OperationalError) {
                return try body()
            } catch {
                throw Refusal(error, in: "login limits")
            }
        }
    }
}
