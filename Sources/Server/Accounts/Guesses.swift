import CountersignAuthority
import CountersignGate
import CountersignHandshake
import CountersignSchemes
import CountersignWire

/// Counts the guesses that a call makes, and refuses what is one too many: the same for names that exist and those that do not.
extension AccountServices {
    /// Debits a stranger. Before any store is asked.
    func debit(_ call: RouteCall, _ account: AccountName, of app: AppName) throws(Refusal) -> LoginLimits.Receipt {
        try debit(.stranger(call.address), account, of: app, at: call.now)
    }

    func debit(
        _ caller: LoginLimits.Caller, _ account: AccountName, of app: AppName, at now: Int64
    ) throws(Refusal) -> LoginLimits.Receipt {
        switch limits.start(app: app, account: account, from: caller, at: now * 1000) {
        case .allowed(let receipt): return receipt
        case .retry(let seconds): throw AccountServices.tooMany(seconds)
        }
    }

    /// Debits a guess and lets it be made. Where it cannot be, it costs nothing.
    func guess<Answer>(
        _ caller: LoginLimits.Caller, _ account: AccountName, of app: AppName, at now: Int64,
        _ answer: (LoginLimits.Receipt) async throws(Refusal) -> Answer
    ) async throws(Refusal) -> Answer {
        let receipt = try debit(caller, account, of: app, at: now)
        do throws(Refusal) {
            return try await answer(receipt)
        } catch {
            refund(receipt, at: now)
            throw error
        }
    }

    func refund(_ receipt: LoginLimits.Receipt, at now: Int64) { limits.refund(receipt, at: now * 1000) }

    func debitRegistration(_ call: RouteCall) throws(Refusal) {
        if case .retry(let seconds) = limits.startRegistration(from: call.address, at: call.now * 1000) {
            throw AccountServices.tooMany(seconds)
        }
    }

    /// Debits a registration's finish to its address, and to no account: a reset code is no password, and nobody guesses one of
    /// 2^100. Taken back where the registration came about, and where it could not be tried.
    func finishRegistration<Answer>(
        _ call: RouteCall, _ answer: () async throws(Refusal) -> Answer
    ) async throws(Refusal) -> Answer {
        let receipt: LoginLimits.Receipt
        switch limits.start(.registrationRecord, from: call.address, at: call.now * 1000) {
        case .allowed(let debited): receipt = debited
        case .retry(let seconds): throw AccountServices.tooMany(seconds)
        }
        do throws(Refusal) {
            let answered = try await answer()
            refund(receipt, at: call.now)
            return answered
        } catch {
            if error.code == .unavailable { refund(receipt, at: call.now) }
            throw error
        }
    }

    /// Who starts the login: a device that the account knows where `proof` says so, fresh and for the first time; else a
    /// stranger. Names without an account are looked up all the same. A proof that does not hold is counted against its address; from
    /// one that has sent too many, none is looked at.
    func caller(
        of start: LoginStart, _ proof: Members?, _ call: RouteCall
    ) async throws(Refusal) -> LoginLimits.Caller {
        guard let proof else { return .stranger(call.address) }
        let time = try proof.integer("time")
        let signature = try proof.bytes("signature", 64)
        guard abs(time - call.now) <= AccountServices.proofWindow,
            case .allowed(let receipt) = limits.start(.deviceProof, from: call.address, at: call.now * 1000)
        else { return .stranger(call.address) }
        guard try await holds(signature, for: time, of: start, receipt, at: call.now),
            await takeOnce(start, signedAt: time, of: try call.release(), at: call.now)
        else { return .stranger(call.address) }
        refund(receipt, at: call.now)
        return .knownDevice(start.binding.device.id)
    }

    private func holds(
        _ signature: [UInt8], for time: Int64, of start: LoginStart, _ receipt: LoginLimits.Receipt, at now: Int64
    ) async throws(Refusal) -> Bool {
        do throws(Refusal) {
            return try await steps.attempt { () throws(Refusal) in
                // The look-up first: it costs less than a signature. That the device is known shows in the time only to who
                // has its public key.
                try login.knows(start) && start.isSigned(signature, for: time)
            }
        } catch {
            // It was not looked at.
            refund(receipt, at: now)
            throw error
        }
    }

    /// Whether this proof comes for the first time.
    private func takeOnce(
        _ start: LoginStart, signedAt time: Int64, of release: ReleaseKey, at now: Int64
    ) async -> Bool {
        let entry = ReplayEntry(
            keyID: release.id, scheme: .messageSignatures, replayKey: start.replayKey(for: time), created: time,
            now: now)
        do throws(Refusal) {
            try await replay.insert(entry)
            return true
        } catch {
            return false
        }
    }

    /// Seconds either side of now within which a device's proof is fresh.
    static let proofWindow: Int64 = 60

    private static func tooMany(_ seconds: Int) -> Refusal {
        Refusal(.tooManyAttempts, "the allowance for guesses is used up", retryAfter: seconds)
    }
}
