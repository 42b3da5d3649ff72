import CountersignSeal

/// The key of the digests of codes. It is derived from the key of the tombstones, which stays the same when
/// the master key is replaced.
package struct AccountCodeKey: Sendable {
    private let hmac: HMACSHA256

    package init(derivedFrom key: Secret) {
        let derived = HKDFSHA512.expand(key, info: Array("countersign/1 account codes".utf8), count: 32)
        hmac = derived.withExposedBytes { HMACSHA256(key: $0) }
    }

    /// The stored form of a code that was just made.
    package func stored(
        _ code: AccountCode, for purpose: CodePurpose, of account: Int64, made now: Int64,
        until expires: Int64
    ) -> StoredAccountCode {
        StoredAccountCode(
            id: AccountCodeID(), purpose: purpose, digest: digest(of: code, for: purpose, of: account),
            made: now, expires: expires, triesLeft: StoredAccountCode.mostTries)
    }

    /// The account's number has a fixed length, and a zero byte ends the purpose.
    func digest(of code: AccountCode, for purpose: CodePurpose, of account: Int64) -> [UInt8] {
        code.digest(by: hmac, in: [1] + account.bigEndianBytes + Array(purpose.description.utf8) + [0])
    }
}

/// A code that was entered. The store asks for the verdict within the transaction that counts the try.
package struct AccountCodeAttempt: Sendable {
    package let account: Int64
    package let purpose: CodePurpose
    /// When the account is verified if the code is right; nil unless the purpose is ``CodePurpose/verify``.
    package let verified: Int64?
    /// Nil for an attempt without an id, which has a budget of its own.
    package let id: AccountCodeID?
    private let digest: [UInt8]
    private let now: Int64

    /// With `id`, the attempt counts against that code only. Without it, it is compared with each code of the
    /// purpose, and counts against ``UnnamedGuesses``. `now` is in whole Unix seconds.
    package init(
        _ code: AccountCode, for purpose: CodePurpose, _ id: AccountCodeID? = nil, of account: Int64,
        under key: AccountCodeKey, at now: Int64
    ) {
        (self.account, self.purpose, self.id, self.now) = (account, purpose, id, now)
        digest = key.digest(of: code, for: purpose, of: account)
        verified = purpose == .verify ? now : nil
    }

    package enum Verdict: Sendable, Equatable {
        case right
        /// The code with the attempt's id, after this try was counted.
        case wrong(StoredAccountCode)
        /// The budget of attempts without an id, after this one was counted.
        case wrongWithoutID(UnnamedGuesses)
        /// The attempt has no id, and the budget is used up: the code was compared with none.
        case exhausted(UnnamedGuesses)
        /// There is no valid code: none was made, or it was used or tried too often, or it has expired.
        case none
    }

    /// Compares the code with the account's stored codes. `guesses` is the stored budget of attempts without
    /// an id, or nil before the first such attempt.
    package func verdict(by stored: [StoredAccountCode], after guesses: UnnamedGuesses? = nil) -> Verdict {
        let compared = stored.filter { $0.purpose == purpose && (id ?? $0.id) == $0.id && $0.isGood(at: now) }
        guard var code = compared.first else { return .none }
        let budget = (guesses ?? UnnamedGuesses(at: now)).updated(at: now)
        if id == nil, budget.left <= 0 { return .exhausted(budget) }
        let isRight = compared.reduce(false) { found, code in
            ConstantTime.equals(digest.span, code.digest.span) == .equal || found
        }
        guard !isRight else { return .right }
        guard id != nil else { return .wrongWithoutID(budget.next) }
        code.triesLeft -= 1
        return .wrong(code)
    }
}
