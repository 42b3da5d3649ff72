import CountersignAuthority
import CountersignGate
import CountersignWire

extension FailingStore {
    func accountCodes(of account: Int64) throws(OperationalError) -> [StoredAccountCode] {
        try base.accountCodes(of: account)
    }
    func add(
        _ code: StoredAccountCode, of account: Int64, at now: Int64, recording draft: AuditDraft
    ) throws(OperationalError) -> AccountCodeInsertOutcome {
        try base.add(code, of: account, at: now, recording: draft)
    }
    func redeem(
        _ attempt: AccountCodeAttempt, recording draft: (AccountCodeAttempt.Verdict) -> AuditDraft?
    ) throws(OperationalError) -> AccountCodeAttempt.Verdict {
        try base.redeem(attempt, recording: draft)
    }
    func forgetAccountCodes(madeBefore time: TrustedTime, limit: Int) throws(OperationalError) -> Int {
        try base.forgetAccountCodes(madeBefore: time, limit: limit)
    }
    func verification(of account: Int64) throws(OperationalError) -> Int64? {
        try base.verification(of: account)
    }
    func verifications(
        of app: AppName, numbered range: ClosedRange<Int64>
    ) throws(OperationalError) -> [Int64: Int64] {
        try base.verifications(of: app, numbered: range)
    }
    func set(
        verification: Int64?, of account: Int64, recording draft: AuditDraft
    ) throws(OperationalError) -> ChangeOutcome {
        try base.set(verification: verification, of: account, recording: draft)
    }
}
