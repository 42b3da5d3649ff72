import CountersignGate
import CountersignWire

/// Codes for the owners of accounts, and which accounts are verified. Countersign sends nothing: a backend
/// delivers the codes. Source: docs/decisions/0089-account-codes.md.
extension Deployment {
    package enum CodeRedemption: Sendable, Equatable {
        case accepted
        /// With the tries that are left of the code with this id, or of entries without one.
        case wrong(triesLeft: Int64)
        /// Too many wrong codes were entered without an id. The next entry without one is compared at that
        /// time; codes are valid as before, with their ids.
        case limited(until: Int64)
        /// There is no valid code of that purpose.
        case none
    }

    /// A new code, before it is delivered to the owner.
    package struct MadeCode: Sendable {
        package let code: AccountCode
        package let id: AccountCodeID
        /// Whole Unix seconds.
        package let until: Int64
    }

    /// Makes a code that is valid for `lifetime` seconds. It does not replace earlier codes of the same
    /// purpose. ``CodePace`` limits how often codes are made.
    package func makeCode(
        for purpose: CodePurpose, of name: AccountName, in app: AppName, lifetime: Int64, at now: Int64
    ) throws(OperationalError) -> MadeCode {
        let number = try unlockedAccount(name, of: app).number
        try requireClock(for: "code")
        let code = AccountCode()
        let until = now + min(lifetime, CodePace.period)
        let stored = try codeKey().stored(code, for: purpose, of: number, made: now, until: until)
        let draft = auditDraft(
            for: .accountCode, on: .account(name, of: app),
            details: [("purpose", .string(purpose.description)), ("until", .integer(until))])
        switch try store.add(stored, of: number, at: now, recording: draft) {
        case .yes: return MadeCode(code: code, id: stored.id, until: until)
        case .missing:
            throw OperationalError(.failed, message: "account \(name): was removed or locked meanwhile")
        case .refused(let refusal):
            throw OperationalError(
                .failed, message: "account \(name): \(refusal.text("codes for \(purpose)"))")
        case .full:
            let codes = try store.accountCodes(of: number).filter { $0.isGood(at: now) }
            let purposes = Set(codes.map(\.purpose.description)).sorted()
            let end = codes.map(\.expires).min() ?? until
            throw OperationalError(
                .failed,
                message: "account \(name): has codes for \(purposes.count) purposes "
                    + "(\(purposes.joined(separator: ", "))), the most allowed; the first expires at "
                    + CivilTime.rfc3339Text(end))
        }
    }

    /// If the code is right, uses up all codes of the purpose; for ``CodePurpose/verify``, also verifies the
    /// account. A wrong code costs the code with this id a try; without `id`, it counts against
    /// ``UnnamedGuesses`` and costs no code one.
    package func redeem(
        _ code: AccountCode, for purpose: CodePurpose, _ id: AccountCodeID? = nil, of name: AccountName,
        in app: AppName, at now: Int64
    ) throws(OperationalError) -> CodeRedemption {
        let number = try unlockedAccount(name, of: app).number
        let attempt = AccountCodeAttempt(code, for: purpose, id, of: number, under: try codeKey(), at: now)
        // Looked up first: a request without a code to compare with does not wait for the writer's lock.
        guard try store.accountCodes(of: number).contains(where: { $0.purpose == purpose }) else {
            return .none
        }
        let verdict = try store.redeem(attempt) { verdict in
            switch verdict {
            case .none, .exhausted: return nil
            case .right where purpose == .verify:
                return auditDraft(
                    for: .accountVerify, on: .account(name, of: app),
                    details: [("verified", true), ("by", "code")])
            case .right, .wrong, .wrongWithoutID:
                return auditDraft(
                    for: .accountRedeem, on: .account(name, of: app),
                    details: [
                        ("purpose", .string(purpose.description)), ("accepted", .bool(verdict == .right)),
                    ])
            }
        }
        switch verdict {
        case .right: return .accepted
        case .wrong(let code): return .wrong(triesLeft: code.triesLeft)
        case .wrongWithoutID(let guesses): return .wrong(triesLeft: guesses.left)
        case .exhausted(let guesses): return .limited(until: guesses.end)
        case .none: return .none
        }
    }

    /// Marks the account as verified. Returns when it was, in whole Unix seconds; an account that is verified
    /// already keeps its time.
    package func verify(
        _ name: AccountName, of app: AppName, at now: Int64
    ) throws(OperationalError) -> Int64 {
        let number = try remainingAccount(name, of: app).number
        if let before = try verificationTime(ofAccount: number) { return before }
        try set(verification: now, of: name, numbered: number, in: app)
        return now
    }

    /// Does nothing if the account is not verified.
    package func revokeVerification(of name: AccountName, in app: AppName) throws(OperationalError) {
        let number = try remainingAccount(name, of: app).number
        guard try store.verification(of: number) != nil else { return }
        try set(verification: nil, of: name, numbered: number, in: app)
    }

    private func set(
        verification: Int64?, of name: AccountName, numbered number: Int64, in app: AppName
    ) throws(OperationalError) {
        let draft = auditDraft(
            for: .accountVerify, on: .account(name, of: app),
            details: [("verified", .bool(verification != nil)), ("by", "administrator")])
        let outcome = try store.set(verification: verification, of: number, recording: draft)
        // Only a removed account cannot be verified. A verification that is missing was already taken back.
        guard outcome == .yes || verification == nil else {
            throw OperationalError(.failed, message: "account \(name): was removed meanwhile")
        }
    }

    /// Throws if the account is not verified, or if a verification of its group was put back.
    package func requireVerified(_ name: AccountName, of app: AppName) throws(OperationalError) {
        let number = try remainingAccount(name, of: app).number
        try store.verifyGroup(ofAccount: number, in: [.accountVerification])
        guard try verificationTime(ofAccount: number) != nil else {
            throw OperationalError(.failed, message: "account \(name): is not verified")
        }
    }

    /// When the account of that number was verified, in whole Unix seconds; nil if it was not, or if the row
    /// was altered.
    package func verificationTime(ofAccount number: Int64) throws(OperationalError) -> Int64? {
        try store.verification(of: number)
    }

    /// The same for the accounts of a page.
    package func verificationTimes(
        of app: AppName, numbered range: ClosedRange<Int64>
    ) throws(OperationalError) -> [Int64: Int64] {
        try store.verifications(of: app, numbered: range)
    }

    /// Throws for a locked account, because a backend may sign people in by a code.
    private func unlockedAccount(_ name: AccountName, of app: AppName) throws(OperationalError) -> Account {
        let account = try remainingAccount(name, of: app)
        guard account.state == .active else {
            throw OperationalError(.failed, message: "account \(name): is locked")
        }
        return account
    }

    /// Throws for a removed account.
    private func remainingAccount(_ name: AccountName, of app: AppName) throws(OperationalError) -> Account {
        let account = try account(name, of: app)
        guard account.state != .removed else {
            throw OperationalError(.failed, message: "account \(name): was removed; that is for good")
        }
        return account
    }
}
