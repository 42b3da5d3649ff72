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
    private let id: AccountCodeID?
    private let digest: [UInt8]
    private let now: Int64

    /// With `id`, the attempt counts against that code only. Without it, it counts against each code of the
    /// purpose. `now` is in whole Unix seconds.
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
        /// The codes that the attempt was compared with, after this try was counted.
        case wrong([StoredAccountCode])
        /// There is no valid code: none was made, or it was used or tried too often, or it has expired.
        case none
    }

    /// Compares the code with the account's stored codes.
    package func verdict(by stored: [StoredAccountCode]) -> Verdict {
        var compared = stored.filter { $0.purpose == purpose && (id ?? $0.id) == $0.id && $0.isGood(at: now) }
        guard !compared.isEmpty else { return .none }
        let isRight = compared.reduce(false) { found, code in
            ConstantTime.equals(digest.span, code.digest.span) == .equal || found
        }
        guard !isRight else { return .right }
        for index in compared.indices { compared[index].triesLeft -= 1 }
        return .wrong(compared)
    }
}
