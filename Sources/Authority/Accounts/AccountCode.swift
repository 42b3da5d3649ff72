import CountersignGate
import CountersignSeal
import CountersignWire

/// A one-time code of eight digits, which a backend sends to an address. It is shown once; the store keeps a
/// keyed digest.
package struct AccountCode: Sendable, CustomStringConvertible, CustomReflectable {
    /// The default lifetime in seconds.
    package static let lifetime: Int64 = 900
    package static let expected = "eight digits"

    private static let count = 8
    private let digits: Secret

    package init(random: some RandomSource = SystemRandom()) {
        var digits: [UInt8] = []
        while digits.count < AccountCode.count {
            // 250 is the greatest multiple of ten that a byte holds.
            for byte in random.bytes(AccountCode.count) where byte < 250 && digits.count < AccountCode.count {
                digits.append(UInt8(ascii: "0") + byte % 10)
            }
        }
        self.digits = Secret(copying: digits.span)
    }

    /// Parses typed text, with or without spaces and dashes. Nil if it is not a code.
    package init?(typed text: String) {
        guard text.utf8.count <= 64 else { return nil }
        let digits = text.utf8.filter { $0 != UInt8(ascii: " ") && $0 != UInt8(ascii: "-") }
        guard digits.count == AccountCode.count, digits.allSatisfy(ASCII.isDigit) else { return nil }
        self.digits = Secret(copying: digits.span)
    }

    package var text: String {
        digits.withExposedBytes { digits in
            String(decoding: (0..<digits.count).map { digits[$0] }, as: UTF8.self)
        }
    }

    fileprivate func digest(by key: HMACSHA256, over place: [UInt8]) -> [UInt8] {
        digits.withExposedBytes { digits in
            let mac = key.authenticate((place + (0..<digits.count).map { digits[$0] }).span)
            return mac.indices.map { mac[$0] }
        }
    }

    package var description: String { "<account code>" }
    package var customMirror: Mirror { Mirror(self, children: []) }
}

/// What a code is good for: 1 to 32 lower-case letters, digits and `-`. A code for one purpose is wrong for
/// every other.
package struct CodePurpose: Sendable, Hashable, CustomStringConvertible {
    package static let expected = "1 to 32 lower-case letters, digits and `-`"
    /// Redeeming such a code marks the account as verified.
    package static let verify = CodePurpose(unchecked: "verify")

    package let description: String

    private init(unchecked text: String) { description = text }

    package init?(_ text: String) {
        guard (1...32).contains(text.utf8.count),
            text.utf8.allSatisfy({
                (UInt8(ascii: "a")...UInt8(ascii: "z")).contains($0) || ASCII.isDigit($0)
                    || $0 == UInt8(ascii: "-")
            })
        else { return nil }
        description = text
    }
}

/// A code as a store keeps it.
package struct StoredAccountCode: Sendable, Equatable {
    /// Wrong codes that are answered so before the right one is refused, too.
    package static let mostTries: Int64 = 5
    /// Codes of an account that have neither expired nor been used, of a purpose each.
    package static let mostOfAccount = 8

    package var purpose: CodePurpose
    /// The keyed digest of the code.
    package var digest: [UInt8]
    /// Whole Unix seconds from which the code is refused.
    package var expires: Int64
    /// Wrong codes that are still answered.
    package var tries: Int64
    /// Authenticates the row, so that a writer to the database cannot make a code of its own.
    package var tag: [UInt8]

    package init(purpose: CodePurpose, digest: [UInt8], expires: Int64, tries: Int64, tag: [UInt8]) {
        (self.purpose, self.digest, self.expires, self.tries) = (purpose, digest, expires, tries)
        self.tag = tag
    }
}

/// That an account's owner has shown to receive what is sent to the account's address.
package struct StoredVerification: Sendable, Equatable {
    /// Whole Unix seconds.
    package var verified: Int64
    /// Authenticates the row.
    package var tag: [UInt8]

    package init(verified: Int64, tag: [UInt8]) { (self.verified, self.tag) = (verified, tag) }
}

/// The key of codes and verifications. It is derived from the key of the tombstones, which stays the same
/// when the master key is replaced.
package struct AccountCodeKey: Sendable {
    private let hmac: HMACSHA256

    package init(derivedFrom key: Secret) {
        let derived = HKDFSHA512.expand(key, info: Array("countersign/1 account codes".utf8), count: 32)
        hmac = derived.withExposedBytes { HMACSHA256(key: $0) }
    }

    /// What a MAC is computed over begins with its use, and has parts of a fixed length, or the purpose, in
    /// which there is no zero byte.
    private enum Use: UInt8 { case code = 1, codeRow, verificationRow }

    private static func place(_ use: Use, account: Int64, purpose: CodePurpose?) -> [UInt8] {
        [use.rawValue] + bytes(account) + Array((purpose?.description ?? "").utf8) + [0]
    }

    private static func bytes(_ number: Int64) -> [UInt8] {
        withUnsafeBytes(of: number.bigEndian) { Array($0) }
    }

    package func store(
        _ code: AccountCode, for purpose: CodePurpose, of account: Int64, until expires: Int64
    ) -> StoredAccountCode {
        var stored = StoredAccountCode(
            purpose: purpose, digest: digest(of: code, for: purpose, of: account), expires: expires,
            tries: StoredAccountCode.mostTries, tag: [])
        stored.tag = tag(of: stored, account: account)
        return stored
    }

    func digest(of code: AccountCode, for purpose: CodePurpose, of account: Int64) -> [UInt8] {
        code.digest(by: hmac, over: AccountCodeKey.place(.code, account: account, purpose: purpose))
    }

    fileprivate func tag(of code: StoredAccountCode, account: Int64) -> [UInt8] {
        let place = AccountCodeKey.place(.codeRow, account: account, purpose: code.purpose)
        let mac = hmac.authenticate(
            (place + AccountCodeKey.bytes(code.expires) + AccountCodeKey.bytes(code.tries) + code.digest).span
        )
        return mac.indices.map { mac[$0] }
    }

    package func verification(at now: Int64, of account: Int64) -> StoredVerification {
        let place = AccountCodeKey.place(.verificationRow, account: account, purpose: nil)
        let mac = hmac.authenticate((place + AccountCodeKey.bytes(now)).span)
        return StoredVerification(verified: now, tag: mac.indices.map { mac[$0] })
    }

    package func isAuthentic(_ code: StoredAccountCode, of account: Int64) -> Bool {
        AccountCodeKey.isSame(tag(of: code, account: account), code.tag)
    }

    package func isAuthentic(_ verification: StoredVerification, of account: Int64) -> Bool {
        let expected = self.verification(at: verification.verified, of: account)
        return AccountCodeKey.isSame(expected.tag, verification.tag)
    }

    /// Compares digests and tags in constant time.
    fileprivate static func isSame(_ left: [UInt8], _ right: [UInt8]) -> Bool {
        ConstantTime.equals(left.span, right.span) == .equal
    }
}

/// A code that was entered, for the store, which judges it within the transaction that counts the try.
package struct AccountCodeAttempt: Sendable {
    package let account: Int64
    package let purpose: CodePurpose
    /// What the account's row is if the code is right and has the purpose of verifying it.
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
        /// With the row after this try.
        case wrong(StoredAccountCode)
        /// None of that purpose was made, or it was used, replaced or tried too often, or it has expired.
        case none
    }

    /// Judges the code by the account's row of the purpose; nil if there is none.
    package func verdict(by stored: StoredAccountCode?) -> Verdict {
        guard let stored, stored.purpose == purpose, key.isAuthentic(stored, of: account),
            now < stored.expires,
            stored.tries > 0
        else { return .none }
        if AccountCodeKey.isSame(digest, stored.digest) { return .right }
        var rest = stored
        rest.tries -= 1
        rest.tag = key.tag(of: rest, account: account)
        return .wrong(rest)
    }
}

/// The codes of accounts, and which accounts are verified. Rows are authenticated by ``AccountCodeKey``.
package protocol AccountCodeStore: Sendable {
    /// By purpose.
    func accountCodes(of account: Int64) throws(OperationalError) -> [StoredAccountCode]
    /// Replaces a code of the same purpose, and deletes those that have expired. `now` is in whole Unix
    /// seconds. `missing` if the account has as many as it may have, or was removed.
    func add(
        _ code: StoredAccountCode, of account: Int64, at now: Int64, recording draft: AuditDraft
    ) throws(OperationalError) -> ChangeOutcome
    /// Uses the code up if it is right, and counts the try otherwise; `draft` gives the record.
    func redeem(
        _ attempt: AccountCodeAttempt, recording draft: (AccountCodeAttempt.Verdict) -> AuditDraft?
    ) throws(OperationalError) -> AccountCodeAttempt.Verdict
    /// Deletes at most `limit`; returns their number.
    func forgetAccountCodes(expiredBefore time: Int64, limit: Int) throws(OperationalError) -> Int

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
