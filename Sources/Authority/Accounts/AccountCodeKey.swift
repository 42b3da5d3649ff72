import CountersignSeal

/// The key of codes and verifications. It is derived from the key of the tombstones, which stays the same
/// when the master key is replaced.
package struct AccountCodeKey: Sendable {
    private let hmac: HMACSHA256

    package init(derivedFrom key: Secret) {
        let derived = HKDFSHA512.expand(key, info: Array("countersign/1 account codes".utf8), count: 32)
        hmac = derived.withExposedBytes { HMACSHA256(key: $0) }
    }

    /// The first byte of what a MAC is computed over. The other parts have a fixed length, except the
    /// purpose, which a zero byte ends.
    private enum Use: UInt8 { case code = 1, codeRow, verificationRow }

    private static func context(_ use: Use, account: Int64, purpose: CodePurpose?) -> [UInt8] {
        [use.rawValue] + bytes(account) + Array((purpose?.description ?? "").utf8) + [0]
    }

    private static func bytes(_ number: Int64) -> [UInt8] {
        withUnsafeBytes(of: number.bigEndian) { Array($0) }
    }

    /// The stored form of a code that was just made.
    package func stored(
        _ code: AccountCode, for purpose: CodePurpose, of account: Int64, until expires: Int64
    ) -> StoredAccountCode {
        var stored = StoredAccountCode(
            purpose: purpose, digest: digest(of: code, for: purpose, of: account), expires: expires,
            triesLeft: StoredAccountCode.mostTries, tag: [])
        stored.tag = tag(of: stored, account: account)
        return stored
    }

    func digest(of code: AccountCode, for purpose: CodePurpose, of account: Int64) -> [UInt8] {
        code.digest(by: hmac, in: AccountCodeKey.context(.code, account: account, purpose: purpose))
    }

    func tag(of code: StoredAccountCode, account: Int64) -> [UInt8] {
        let context = AccountCodeKey.context(.codeRow, account: account, purpose: code.purpose)
        let numbers = AccountCodeKey.bytes(code.expires) + AccountCodeKey.bytes(code.triesLeft)
        let mac = hmac.authenticate((context + numbers + code.digest).span)
        return mac.indices.map { mac[$0] }
    }

    package func verification(at now: Int64, of account: Int64) -> StoredVerification {
        let context = AccountCodeKey.context(.verificationRow, account: account, purpose: nil)
        let mac = hmac.authenticate((context + AccountCodeKey.bytes(now)).span)
        return StoredVerification(verified: now, tag: mac.indices.map { mac[$0] })
    }

    package func isAuthentic(_ code: StoredAccountCode, of account: Int64) -> Bool {
        AccountCodeKey.isSame(tag(of: code, account: account), as: code.tag)
    }

    package func isAuthentic(_ verification: StoredVerification, of account: Int64) -> Bool {
        let expected = self.verification(at: verification.verified, of: account)
        return AccountCodeKey.isSame(expected.tag, as: verification.tag)
    }

    /// Compares two digests or tags in constant time.
    static func isSame(_ computed: [UInt8], as stored: [UInt8]) -> Bool {
        ConstantTime.equals(computed.span, stored.span) == .equal
    }
}

/// A code that was entered. The store asks for the verdict within the transaction that counts the try.
package struct AccountCodeAttempt: Sendable {
    package let account: Int64
    package let purpose: CodePurpose
    /// The verification to store if the code is right; nil unless the purpose is ``CodePurpose/verify``.
    package let verification: StoredVerification?
    private let key: AccountCodeKey
    private let digest: [UInt8]
    private let now: Int64

    /// `now` is in whole Unix seconds.
    package init(
        _ code: AccountCode, for purpose: CodePurpose, of account: Int64, under key: AccountCodeKey,
        at now: Int64
    ) {
        (self.account, self.purpose, self.key, self.now) = (account, purpose, key, now)
        digest = key.digest(of: code, for: purpose, of: account)
        verification = purpose == .verify ? key.verification(at: now, of: account) : nil
    }

    package enum Verdict: Sendable, Equatable {
        case right
        /// With the row after this try. One without tries left is deleted.
        case wrong(StoredAccountCode)
        /// There is no valid code of that purpose: none was made, or it was used, replaced or tried too
        /// often, or it has expired.
        case none
    }

    /// Compares the code with the one that the store has for the account and the purpose. `stored` is nil if
    /// the store has none.
    package func verdict(by stored: StoredAccountCode?) -> Verdict {
        guard let stored, stored.purpose == purpose, key.isAuthentic(stored, of: account),
            now < stored.expires,
            stored.triesLeft > 0
        else { return .none }
        if AccountCodeKey.isSame(digest, as: stored.digest) { return .right }
        var tried = stored
        tried.triesLeft -= 1
        tried.tag = key.tag(of: tried, account: account)
        return .wrong(tried)
    }
}
