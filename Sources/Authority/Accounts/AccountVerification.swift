import CountersignGate
import CountersignWire

/// Codes for the owners of accounts, and which accounts are verified. Countersign sends nothing: a backend
/// delivers the codes. Source: docs/decisions/0089-account-codes.md.
extension Deployment {
    package enum CodeRedemption: Sendable, Equatable {
        case accepted
        /// With how many wrong codes are still answered so.
        case wrong(triesLeft: Int64)
        /// There is none to compare with: it was used, replaced or tried too often, or it has expired.
        case none
    }

    /// Makes a code in place of an earlier one of the same purpose. It is good for `lifetime` seconds.
    package func makeCode(
        for purpose: CodePurpose, of name: AccountName, in app: AppName, lifetime: Int64, at now: Int64
    ) throws(OperationalError) -> (code: AccountCode, until: Int64) {
        let number = try keptAccount(name, of: app).number
        let code = AccountCode()
        let until = now + lifetime
        let stored = try codeKey().store(code, for: purpose, of: number, until: until)
        let draft = auditDraft(
            for: .accountCode, on: .account(name, of: app),
            details: [("purpose", .string(purpose.description)), ("until", .integer(until))])
        guard case .yes = try store.add(stored, of: number, at: now, recording: draft) else {
            throw OperationalError(
                .failed,
                message: "account \(name): has codes of \(StoredAccountCode.mostOfAccount) purposes that "
                    + "have not expired; expected at most so many")
        }
        return (code, until)
    }

    /// Uses the code up if it is right. One of the purpose ``CodePurpose/verify`` verifies the account.
    package func redeem(
        _ code: AccountCode, for purpose: CodePurpose, of name: AccountName, in app: AppName, at now: Int64
    ) throws(OperationalError) -> CodeRedemption {
        let number = try keptAccount(name, of: app).number
        let attempt = AccountCodeAttempt(code, for: purpose, of: number, under: try codeKey(), at: now)
        let verdict = try store.redeem(attempt) { verdict in
            let told: [(name: String, value: JSONValue)] = [("purpose", .string(purpose.description))]
            switch verdict {
            case .none: return nil
            case .right where purpose == .verify:
                return auditDraft(
                    for: .accountVerify, on: .account(name, of: app),
                    details: [("verified", true), ("by", "code")])
            case .right, .wrong:
                return auditDraft(
                    for: .accountRedeem, on: .account(name, of: app),
                    details: told + [("accepted", .bool(verdict == .right))])
            }
        }
        switch verdict {
        case .right: return .accepted
        case .wrong(let rest): return .wrong(triesLeft: rest.tries)
        case .none: return .none
        }
    }

    /// Marks the account as verified, or takes that back. Returns when it was verified, in whole Unix
    /// seconds; an account that is verified already keeps its time.
    package func setVerified(
        _ isVerified: Bool, of name: AccountName, in app: AppName, at now: Int64
    ) throws(OperationalError) -> Int64? {
        let number = try keptAccount(name, of: app).number
        let before = try verified(account: number)
        guard (before != nil) != isVerified else { return before }
        let draft = auditDraft(
            for: .accountVerify, on: .account(name, of: app),
            details: [("verified", .bool(isVerified)), ("by", "administrator")])
        let new = isVerified ? try codeKey().verification(at: now, of: number) : nil
        _ = try store.set(new, of: number, recording: draft)
        return new?.verified
    }

    /// Throws if the account is not verified.
    package func requireVerified(_ name: AccountName, of app: AppName) throws(OperationalError) {
        guard try verified(account: keptAccount(name, of: app).number) != nil else {
            throw OperationalError(.failed, message: "account \(name): is not verified")
        }
    }

    /// When the account of that number was verified, in whole Unix seconds; nil if it was not, or if the row
    /// was altered.
    package func verified(account number: Int64) throws(OperationalError) -> Int64? {
        guard let found = try store.verification(of: number) else { return nil }
        return try codeKey().isAuthentic(found, of: number) ? found.verified : nil
    }

    /// The same for the accounts of a page.
    package func verified(
        of app: AppName, numbered range: ClosedRange<Int64>
    ) throws(OperationalError) -> [Int64: Int64] {
        let found = try store.verifications(of: app, numbered: range)
        guard !found.isEmpty else { return [:] }
        let key = try codeKey()
        return found.filter { key.isAuthentic($0.value, of: $0.key) }.mapValues(\.verified)
    }

    private func keptAccount(_ name: AccountName, of app: AppName) throws(OperationalError) -> Account {
        let account = try account(name, of: app)
        guard account.state != .removed else {
            throw OperationalError(.failed, message: "account \(name): was removed; that is for good")
        }
        return account
    }
}
