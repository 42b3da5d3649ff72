import CountersignAuthority
import CountersignGate
import CountersignHandshake
import CountersignSchemes
import CountersignSeal
import CountersignThreads
import CountersignWire
import Glibc

/// Sign-up, login and password change as a server runs them: the routes, and the threads and files that they
/// use.
final class AccountSubsystem {
    let services: AccountServices
    private let loginLimitPersistence: LoginLimitPersistence
    private let registrationKeys: RegistrationKeys

    /// Starts the hashing threads and computes one slow hash. `shared` is what several nodes have in common,
    /// and nil if the store is this machine's alone.
    init(
        settings: LoginSettings, deployment: Deployment, sessions: SessionService, writer: any StoreWriter,
        shared: (any SharedLoginStore)? = nil, replay: any ReplayGuard, sharing limits: FileDescriptor? = nil,
        handOver: HandoverState = HandoverState(),
        log: EventLog?,
        clock: any TimeSource = SystemTime(), composition: any ServerComposition = SoundComposition()
    ) throws(OperationalError) {
        let cores = max(1, sysconf(Int32(_SC_NPROCESSORS_ONLN)))
        let keys = try AccountKeys(deployment)
        registrationKeys = keys.registrationKeys
        let pending: any PendingLoginTable =
            if let shared {
                try SharedPendingLogins(keys, in: shared, capacity: settings.pending)
            } else {
                PendingLogins(capacity: settings.pending)
            }
        loginLimitPersistence = try LoginLimitPersistence(
            in: deployment.folder, rules: settings.rules, sharing: limits, pending: pending, log: log,
            clock: clock)
        let sharedLimits = shared.map { [loginLimitPersistence] in
            SharedLoginLimits(loginLimitPersistence.limits, keys: keys, in: $0)
        }
        loginLimitPersistence.sharedLimits = sharedLimits
        loginLimitPersistence.accounts = sessions.life.reader
        let limits = loginLimitPersistence.limits
        let steps = try WorkPool(.init(workers: cores, queue: settings.queue, patience: 5_000))
        services = AccountServices(
            login: composition.login(
                Login(keys, reading: sessions.life.reader, pending: pending), accounts: sessions.life.reader),
            signUps: Registration(keys, for: .signUp),
            passwordChanges: Registration(keys, for: .passwordChange),
            enrolment: Enrolment(sessions.life), limits: limits,
            guesses: GuessLimits(
                own: limits, shared: sharedLimits, threads: steps,
                accounts: loginLimitPersistence.guesses),
            work: LoginWork(keys), steps: steps,
            passwords: try WorkPool(
                .init(workers: settings.hashes ?? max(1, cores / 2), queue: settings.hashQueue)),
            replay: replay, handOver: handOver, sessions: sessions, bearers: sessions.bearers,
            legacyLogins: LegacyLoginServices(
                apps: try LegacyApps(deployment),
                signIn: composition.legacyLogin(
                    try LegacyLoginService(keys, reader: sessions.life.reader),
                    accounts: sessions.life.reader)),
            keys: sessions.live.keys, policyFiles: deployment.policyFiles)
    }

    var routes: [Route] {
        RegistrationRoutes(services: services).routes + LoginRoutes(services: services).routes
            + PasswordLoginRoute(services: services).routes + PasswordRoutes(services: services).routes
    }

    func start() throws(OperationalError) { try loginLimitPersistence.start() }

    /// Erases what is needed no longer.
    func runMaintenance(at now: TrustedTime) throws(OperationalError) {
        try registrationKeys.eraseExpired(at: now)
    }

    /// Call after the loops have ended.
    func stop() {
        services.steps.stop()
        services.passwords.stop()
        loginLimitPersistence.stop()
    }
}

/// What the routes of sign-up, login and password change use; one instance for all loops.
struct AccountServices: Sendable {
    let login: any PasswordLogin
    let signUps: Registration
    let passwordChanges: Registration
    let enrolment: Enrolment
    /// This process's own: those on work, and those on guesses unless nodes count them together.
    let limits: LoginLimits
    let guesses: GuessLimits
    let work: LoginWork
    /// Computes OPAQUE steps. One step takes a fraction of a millisecond, but a login storm brings thousands,
    /// so they do not run on event loops.
    let steps: WorkPool
    /// Hashes passwords: 19 MiB and 20 ms each.
    let passwords: WorkPool
    let replay: any ReplayGuard
    let handOver: HandoverState
    let sessions: SessionService
    let bearers: BearerSessions
    let legacyLogins: LegacyLoginServices
    /// Finds the release of an unsigned call.
    let keys: ReleaseKeyDirectory
    let policyFiles: PolicyFiles
}

/// What verifies the logins of legacy clients.
struct LegacyLoginServices: Sendable {
    let apps: LegacyApps
    let signIn: any LegacyPasswordLogin
}

extension WorkPool {
    /// Work that may refuse.
    func attempt<Value: Sendable>(
        _ work: @escaping @Sendable () throws(Refusal) -> Value
    ) async throws(Refusal) -> Value {
        let result = try await run { () -> Result<Value, Refusal> in
            do throws(Refusal) { return .success(try work()) } catch { return .failure(error) }
        }
        return try result.get()
    }
}

/// Debits the guesses that a call makes from its limits, and refuses the call over a limit, in the same way
/// for names that exist and for names that do not.
extension AccountServices {
    /// Debits a caller without a known device, before any store is read.
    func debit(_ call: RouteCall, account: AccountName, of app: AppName) async throws(Refusal)
        -> LoginLimits.Receipt
    {
        try await debit(.stranger(call.address), account: account, of: app, at: call.now)
    }

    func debit(
        _ caller: LoginLimits.Caller, account: AccountName, of app: AppName, at now: Int64
    ) async throws(Refusal) -> LoginLimits.Receipt {
        switch try await guesses.start(app: app, account: account, from: caller, at: now * 1000) {
        case .allowed(let receipt): return receipt
        case .retry(let seconds, _): throw AccountServices.tooMany(seconds)
        }
    }

    /// The same for a start that is offered work if strangers have used up what it counts against, and if a
    /// solution would be of use to it.
    private func debitOfferingWork(
        _ caller: LoginLimits.Caller, account: AccountName, of app: AppName, at now: Int64
    ) async throws(Refusal) -> LoginLimits.Receipt {
        switch try await guesses.start(app: app, account: account, from: caller, at: now * 1000) {
        case .allowed(let receipt): return receipt
        case .retry(let seconds, _):
            var refusal = AccountServices.tooMany(seconds)
            if case .stranger(let address) = caller,
                let used = try await guesses.solutionsUsed(
                    app: app, account: account, from: address, at: now * 1000)
            {
                refusal.work = work.offer(to: account, of: app, used: used, at: now)
            }
            throw refusal
        }
    }

    /// The replay guard's entry of a solution that holds and was not used before; nil for others. Nothing
    /// here depends on whether there is such an account.
    private func entry(
        of solution: LoginWork.Solution?, for account: AccountName, of app: AppName, at now: Int64
    ) async throws(Refusal) -> ReplayEntry? {
        guard let solution,
            let used = try await guesses.solutionsUsed(app: app, account: account, at: now * 1000),
            let expires = work.expiry(of: solution, for: account, of: app, used: used, at: now),
            let scope = AccountServices.workScope
        else { return nil }
        // Kept from the expiry on, so that it is known for as long as the challenge is good.
        let entry = ReplayEntry(
            keyID: scope, scheme: .messageSignatures, replayKey: solution.replayKey, created: expires,
            now: now)
        do {
            try replay.lookUp(entry)
            return entry
        } catch {
            return nil
        }
    }

    /// False if the entry is in the guard, and if the guard cannot tell.
    private func isFirstUse(_ entry: ReplayEntry) async -> Bool {
        do {
            try await replay.insert(entry)
            return true
        } catch {
            return false
        }
    }

    /// One scope for all releases. No release has this id: it is reserved for tokens.
    private static let workScope = KeyID("s_login-work")

    /// Debits a guess, then performs it. Refunds the guess if it could not be made. What is expired, wrong or
    /// used counts as no work.
    func withGuessDebited<Answer>(
        by caller: LoginLimits.Caller, bringing solution: LoginWork.Solution? = nil, account: AccountName,
        of app: AppName, at now: Int64,
        perform answer: (LoginLimits.Receipt) async throws(Refusal) -> Answer
    ) async throws(Refusal) -> Answer {
        if case .stranger(let address) = caller,
            let entry = try await entry(of: solution, for: account, of: app, at: now),
            let answered = try await withSolutionSpent(
                entry, from: address, account: account, of: app, at: now, perform: answer)
        {
            return answered
        }
        let receipt = try await debitOfferingWork(caller, account: account, of: app, at: now)
        return try await refundingFailure(receipt, of: account, in: app, at: now, perform: answer)
    }

    /// Performs the guess, and spends the solution before the answer is given: one that a limit refuses, or
    /// that a full queue turns away, can be brought again. Nil if another start used it meanwhile. That
    /// answer is dropped, and its address pays: copies of one solution must not hold the account's bucket.
    private func withSolutionSpent<Answer>(
        _ entry: ReplayEntry, from address: ClientAddress, account: AccountName, of app: AppName,
        at now: Int64, perform answer: (LoginLimits.Receipt) async throws(Refusal) -> Answer
    ) async throws(Refusal) -> Answer? {
        let receipt: LoginLimits.Receipt
        switch try await guesses.startSolved(app: app, account: account, from: address, at: now * 1000) {
        case .allowed(let debited): receipt = debited
        case .retry(let seconds, _): throw AccountServices.tooMany(seconds)
        }
        let answered = try await refundingFailure(receipt, of: account, in: app, at: now, perform: answer)
        if await isFirstUse(entry) { return answered }
        await guesses.refundAllButAddress(receipt, guessed: (app, account), at: now * 1000)
        return nil
    }

    private func refundingFailure<Answer>(
        _ receipt: LoginLimits.Receipt, of account: AccountName, in app: AppName, at now: Int64,
        perform answer: (LoginLimits.Receipt) async throws(Refusal) -> Answer
    ) async throws(Refusal) -> Answer {
        do {
            return try await answer(receipt)
        } catch {
            await refund(receipt, of: account, in: app, at: now)
            throw error
        }
    }

    /// Refunds the guess of a login that was verified, or that could not be judged.
    func refund(
        _ receipt: LoginLimits.Receipt, of account: AccountName, in app: AppName, at now: Int64
    ) async {
        await guesses.refund(receipt, guessed: (app, account), at: now * 1000)
    }

    /// Refunds a debit that was not for a guess.
    private func refund(_ receipt: LoginLimits.Receipt, at now: Int64) async {
        await guesses.refund(receipt, guessed: nil, at: now * 1000)
    }

    func debitRegistration(_ call: RouteCall) async throws(Refusal) {
        let decision = try await guesses.startRegistration(from: call.address, at: call.now * 1000)
        if case .retry(let seconds, _) = decision {
            throw AccountServices.tooMany(seconds)
        }
    }

    /// Debits a registration's finish to its address, and to no account: a reset code is no password, and
    /// 2^100 possible codes rule out guessing. Refunds the debit if the registration succeeds or could not be
    /// tried.
    func finishRegistration<Answer>(
        for call: RouteCall, perform answer: () async throws(Refusal) -> Answer
    ) async throws(Refusal) -> Answer {
        let receipt: LoginLimits.Receipt
        switch limits.start(.registrationRecord, from: call.address, at: call.now * 1000) {
        case .allowed(let debited): receipt = debited
        case .retry(let seconds, _): throw AccountServices.tooMany(seconds)
        }
        do {
            let answered = try await answer()
            await refund(receipt, at: call.now)
            return answered
        } catch {
            if error.code == .unavailable { await refund(receipt, at: call.now) }
            throw error
        }
    }

    /// The caller that starts the login: a known device if `proof` is fresh, valid and used for the first
    /// time; otherwise a stranger. Looks up names without an account in the same way. A look-up that finds no
    /// known device is debited to the address and its networks, and once one of them is used up, no proof
    /// from there is looked at. A known device's proof that does not hold is debited to the device.
    func caller(
        of start: LoginStart, proof: RequestBodyMembers?, in call: RouteCall
    ) async throws(Refusal) -> LoginLimits.Caller {
        guard let proof else { return .stranger(call.address) }
        let time = try proof.integer("time")
        let signature = try proof.bytes("signature", count: 64)
        guard abs(time - call.now) <= AccountServices.proofWindow,
            case .allowed(let lookUp) = limits.start(.deviceProof, from: call.address, at: call.now * 1000),
            let check = try await proofCheck(of: start, for: call, lookUp: lookUp),
            try await holds(signature, for: time, of: start, receipt: check, at: call.now),
            await takeOnce(start, signedAt: time, of: try call.release(), at: call.now)
        else { return .stranger(call.address) }
        await refund(check, at: call.now)
        return .knownDevice(start.binding.device.id)
    }

    /// The debit for checking a proof; nil if the account does not know the device, or if too many invalid
    /// proofs of the device were checked. The debit of the look-up is then kept: it is refunded only to a
    /// caller that names a known device, which a stranger cannot do.
    private func proofCheck(
        of start: LoginStart, for call: RouteCall, lookUp: LoginLimits.Receipt
    ) async throws(Refusal) -> LoginLimits.Receipt? {
        let isKnown: Bool
        do {
            isKnown = try await steps.attempt { () throws(Refusal) in try login.knows(start) }
        } catch {
            await refund(lookUp, at: call.now)
            throw error
        }
        guard isKnown,
            case .allowed(let check) = limits.startProof(
                app: start.app, account: start.binding.account, of: start.binding.device.id,
                from: call.address, at: call.now * 1000)
        else { return nil }
        await refund(lookUp, at: call.now)
        return check
    }

    private func holds(
        _ signature: [UInt8], for time: Int64, of start: LoginStart, receipt: LoginLimits.Receipt,
        at now: Int64
    ) async throws(Refusal) -> Bool {
        do {
            return try await steps.attempt { () throws(Refusal) in start.isSigned(signature, for: time) }
        } catch {
            // The proof was not verified.
            await refund(receipt, at: now)
            throw error
        }
    }

    /// Whether this proof is used for the first time.
    private func takeOnce(
        _ start: LoginStart, signedAt time: Int64, of release: AppRelease, at now: Int64
    ) async -> Bool {
        let entry = ReplayEntry(
            keyID: release.id, scheme: .messageSignatures, replayKey: start.replayKey(for: time),
            created: time,
            now: now)
        return await isFirstUse(entry)
    }

    /// A device's proof is fresh within this many seconds before or after now.
    static let proofWindow: Int64 = 60

    private static func tooMany(_ seconds: Int) -> Refusal {
        Refusal(.tooManyAttempts, detail: "the allowance for guesses is used up", retryAfter: seconds)
    }
}
