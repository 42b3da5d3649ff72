import CountersignGate
import CountersignSeal
import CountersignWire

/// A code as a store keeps it.
package struct StoredAccountCode: Sendable, Equatable {
    /// The number of wrong attempts after which a code is no longer valid.
    package static let mostTries: Int64 = 5
    /// The most purposes for which an account can have valid codes at a time.
    package static let mostPurposes = 8

    package var id: AccountCodeID
    package var purpose: CodePurpose
    /// The keyed digest of the code.
    package var digest: [UInt8]
    /// Whole Unix seconds. The row stays for ``CodePace/period`` after that.
    package var made: Int64
    /// Whole Unix seconds from which the code is refused.
    package var expires: Int64
    /// The remaining wrong attempts.
    package var triesLeft: Int64

    package init(
        id: AccountCodeID, purpose: CodePurpose, digest: [UInt8], made: Int64, expires: Int64,
        triesLeft: Int64
    ) {
        (self.id, self.purpose, self.digest) = (id, purpose, digest)
        (self.made, self.expires, self.triesLeft) = (made, expires, triesLeft)
    }

    /// Whether the code can be redeemed.
    package func isGood(at now: Int64) -> Bool { now < expires && triesLeft > 0 }

    /// This code as ``CodePace`` counts it.
    package func entry(at now: Int64) -> CodePace.Entry {
        CodePace.Entry(made: made, end: isGood(at: now) ? expires : nil)
    }
}

/// Identifies a code, so that attempts at it do not use up the tries of another. The id is random: a stranger
/// cannot guess the ids of codes that others asked for.
package struct AccountCodeID: Sendable, Hashable, CustomStringConvertible {
    package static let expected = "c_ and 16 hexadecimal digits, as `account code` prints"
    private static let count = 8

    package let bytes: [UInt8]

    /// A new random id.
    package init() { bytes = SystemRandom().bytes(AccountCodeID.count) }

    /// The first bytes of `digest`.
    init(digest: Digest32) { bytes = (0..<AccountCodeID.count).map { digest[$0] } }

    /// Nil unless `bytes` has eight bytes.
    package init?(_ bytes: [UInt8]) {
        guard bytes.count == AccountCodeID.count else { return nil }
        self.bytes = bytes
    }

    /// Parses what ``description`` writes; nil for anything else.
    package init?(_ text: String) {
        guard text.hasPrefix("c_"), let bytes = Hex.decode(String(text.dropFirst(2))) else { return nil }
        self.init(bytes)
    }

    package var description: String { "c_" + Hex.encode(bytes.span) }
}

/// Stores the codes of accounts, and which accounts are verified. The owner of a verified account has proved
/// to receive messages at the account's address. Altered rows are ignored.
package protocol AccountCodeStore: Sendable {
    /// The account's codes, sorted by purpose and then from the oldest to the newest, including codes that
    /// are no longer valid.
    func accountCodes(of account: Int64) throws(OperationalError) -> [StoredAccountCode]
    /// `now` is in whole Unix seconds.
    func add(
        _ code: StoredAccountCode, of account: Int64, at now: Int64, recording draft: AuditDraft
    ) throws(OperationalError) -> AccountCodeInsertOutcome
    /// Deletes the codes of the purpose if the code is right; otherwise counts the try: of the code with the
    /// attempt's id, or of the budget of attempts without one (``UnnamedGuesses``), which outlives the codes.
    /// A right code for ``CodePurpose/verify`` also updates the time of verification. `draft` returns the
    /// audit record for a verdict, or nil for no record. Throws if codes of the account's group were deleted
    /// or put back.
    func redeem(
        _ attempt: AccountCodeAttempt, recording draft: (AccountCodeAttempt.Verdict) -> AuditDraft?
    ) throws(OperationalError) -> AccountCodeAttempt.Verdict
    /// Deletes at most `limit` codes that were made before `time`; returns how many it deleted.
    func forgetAccountCodes(madeBefore time: TrustedTime, limit: Int) throws(OperationalError) -> Int

    /// When the account was verified, in whole Unix seconds; nil if it was not.
    func verification(of account: Int64) throws(OperationalError) -> Int64?
    /// Of those accounts of the app, by their numbers.
    func verifications(
        of app: AppName, numbered range: ClosedRange<Int64>
    ) throws(OperationalError) -> [Int64: Int64]
    /// Sets the time of verification; nil removes the verification. Returns `missing` if the account is not
    /// verified or was removed.
    func set(
        verification: Int64?, of account: Int64, recording draft: AuditDraft
    ) throws(OperationalError) -> ChangeOutcome
}

package enum AccountCodeInsertOutcome: StoreOutcome, Sendable, Equatable {
    case yes
    /// The account was removed or locked.
    case missing
    case refused(CodePace.Refusal)
    /// The account has valid codes for ``StoredAccountCode/mostPurposes`` other purposes.
    case full

    package var didChange: Bool { self == .yes }
}
