import CountersignGate
import CountersignWire

/// A code as a store keeps it.
package struct StoredAccountCode: Sendable, Equatable {
    /// Wrong codes after which a code is deleted.
    package static let mostTries: Int64 = 5
    /// Codes of an account that can still be redeemed, of a purpose each.
    package static let mostOfAccount = 8

    package var purpose: CodePurpose
    /// The keyed digest of the code.
    package var digest: [UInt8]
    /// Whole Unix seconds from which the code is refused.
    package var expires: Int64
    /// Wrong codes that are left before the code is deleted.
    package var triesLeft: Int64
    /// Authenticates the row, so that a writer to the database cannot make a code of its own.
    package var tag: [UInt8]

    package init(purpose: CodePurpose, digest: [UInt8], expires: Int64, triesLeft: Int64, tag: [UInt8]) {
        (self.purpose, self.digest, self.expires, self.triesLeft) = (purpose, digest, expires, triesLeft)
        self.tag = tag
    }
}

/// When an account's owner has proved to receive messages sent to the account's address.
package struct StoredVerification: Sendable, Equatable {
    /// Whole Unix seconds.
    package var verified: Int64
    /// Authenticates the row.
    package var tag: [UInt8]

    package init(verified: Int64, tag: [UInt8]) { (self.verified, self.tag) = (verified, tag) }
}

/// The codes of accounts, and which accounts are verified. Rows are authenticated by ``AccountCodeKey``.
package protocol AccountCodeStore: Sendable {
    /// By purpose.
    func accountCodes(of account: Int64) throws(OperationalError) -> [StoredAccountCode]
    /// Replaces a code of the same purpose, and deletes those that have expired. `now` is in whole Unix
    /// seconds.
    func add(
        _ code: StoredAccountCode, of account: Int64, at now: Int64, recording draft: AuditDraft
    ) throws(OperationalError) -> AccountCodeInsertOutcome
    /// Uses the code up if it is right, and counts the try otherwise. A right code of the purpose
    /// ``CodePurpose/verify`` sets the time of verification anew. `draft` gives the audit record for a
    /// verdict; nil for none.
    func redeem(
        _ attempt: AccountCodeAttempt, recording draft: (AccountCodeAttempt.Verdict) -> AuditDraft?
    ) throws(OperationalError) -> AccountCodeAttempt.Verdict
    /// Deletes at most `limit`; returns their number.
    func forgetAccountCodes(expiredBefore time: TrustedTime, limit: Int) throws(OperationalError) -> Int

    func verification(of account: Int64) throws(OperationalError) -> StoredVerification?
    /// Of those accounts of the app, by their numbers.
    func verifications(
        of app: AppName, numbered range: ClosedRange<Int64>
    ) throws(OperationalError) -> [Int64: StoredVerification]
    /// Nil removes it. `missing` if that is so already, or if the account was removed.
    func set(
        _ verification: StoredVerification?, of account: Int64, recording draft: AuditDraft
    ) throws(OperationalError) -> ChangeOutcome
}

package enum AccountCodeInsertOutcome: StoreOutcome, Sendable, Equatable {
    case yes
    /// The account was removed or locked.
    case missing
    /// The account has ``StoredAccountCode/mostOfAccount``.
    case full

    package var didChange: Bool { self == .yes }
}
