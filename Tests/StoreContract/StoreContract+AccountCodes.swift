import CountersignAuthority
import CountersignGate
import CountersignSeal
import CountersignWire
import ScriptedClock
import Testing

/// Codes of accounts: a right one is used up, wrong ones are counted, and an altered row counts as none.
/// Verifications: set, taken back, and gone with the account.
extension StoreContract {
    package func accountCodes() throws {
        let account = try added(accountDraft("coded"))
        let key = self.key(1)
        try codesAreRedeemed(account, under: key)
        try codesAreBounded(account, under: key)
        try verifications(account, under: key)
    }

    private func key(_ byte: UInt8) -> AccountCodeKey {
        AccountCodeKey(derivedFrom: Secret(copying: [UInt8](repeating: byte, count: 32).span))
    }

    private func entered(_ digits: String) throws -> AccountCode { try #require(AccountCode(typed: digits)) }

    private func redeem(
        _ digits: String, for purpose: CodePurpose = .verify, of account: Account, under key: AccountCodeKey,
        at now: Int64 = 100
    ) throws -> (verdict: AccountCodeAttempt.Verdict, isRecorded: Bool) {
        let attempt = AccountCodeAttempt(
            try entered(digits), for: purpose, of: account.number, under: key, at: now)
        let before = try make().auditRows(after: 0, limit: 100_000).count
        let verdict = try make().redeem(attempt) { $0 == .none ? nil : .counting }
        return (verdict, try make().auditRows(after: 0, limit: 100_000).count == before + 1)
    }

    private func codesAreRedeemed(_ account: Account, under key: AccountCodeKey) throws {
        #expect(try make().accountCodes(of: account.number) == [])
        #expect(try redeem("12345678", of: account, under: key).verdict == .none)
        let code = key.stored(try entered("12345678"), for: .verify, of: account.number, until: 200)
        #expect(try make().add(code, of: account.number, at: 100, recording: .counting) == .yes)
        #expect(try make().accountCodes(of: account.number) == [code])
        let other = try #require(CodePurpose("sign-in"))
        #expect(try redeem("12345678", for: other, of: account, under: key).verdict == .none)
        #expect(try redeem("12345678", of: account, under: self.key(2)).verdict == .none)
        #expect(try redeem("12345678", of: account, under: key, at: 200).verdict == .none, "it has expired")
        for left in stride(from: StoredAccountCode.mostTries - 1, through: 1, by: -1) {
            let (verdict, isRecorded) = try redeem("12345679", of: account, under: key)
            guard case .wrong(let rest) = verdict else {
                throw OperationalError(.failed, message: "\(verdict)")
            }
            #expect(rest.triesLeft == left && isRecorded)
        }
        let (verdict, isRecorded) = try redeem("1234 5678", of: account, under: key)
        #expect(verdict == .right && isRecorded)
        #expect(try make().verification(of: account.number)?.verified == 100)
        #expect(try redeem("12345678", of: account, under: key) == (.none, false), "it is used up")
        // A replaced code is wrong, and after the last try the right one is refused, too.
        #expect(try make().add(code, of: account.number, at: 100, recording: .counting) == .yes)
        let next = key.stored(try entered("00000000"), for: .verify, of: account.number, until: 200)
        #expect(try make().add(next, of: account.number, at: 100, recording: .counting) == .yes)
        for _ in 0..<StoredAccountCode.mostTries { _ = try redeem("12345678", of: account, under: key) }
        #expect(try redeem("00000000", of: account, under: key) == (.none, false))
        #expect(try make().set(nil, of: account.number, recording: .counting) == .yes)
    }

    private func codesAreBounded(_ account: Account, under key: AccountCodeKey) throws {
        func add(_ number: Int, until expires: Int64, at now: Int64) throws -> AccountCodeInsertOutcome {
            let purpose = try #require(CodePurpose("purpose-\(number)"))
            let code = key.stored(try entered("11111111"), for: purpose, of: account.number, until: expires)
            return try make().add(code, of: account.number, at: now, recording: .counting)
        }
        // The one of .verify was deleted with its last try.
        for number in 1...StoredAccountCode.mostOfAccount {
            #expect(try add(number, until: Int64(300 + number), at: 100) == .yes)
        }
        #expect(try add(99, until: 300, at: 100) == .full, "there are as many as there may be")
        #expect(try add(1, until: 301, at: 100) == .yes, "it replaces one")
        #expect(try add(99, until: 500, at: 301) == .yes, "one has expired")
        #expect(try make().forgetAccountCodes(expiredBefore: 304, limit: 1) == 1)
        #expect(try make().forgetAccountCodes(expiredBefore: 304, limit: 9) == 1)
        #expect(try make().accountCodes(of: account.number).map(\.expires).min() == 304)
        #expect(
            try make().add(
                key.stored(try entered("11111111"), for: .verify, of: .max, until: 9), of: .max, at: 1,
                recording: .counting) == .missing)
    }

    private func verifications(_ account: Account, under key: AccountCodeKey) throws {
        let verification = key.verification(at: 700, of: account.number)
        #expect(try make().verification(of: account.number) == nil)
        #expect(try make().set(nil, of: account.number, recording: .counting) == .missing)
        #expect(try make().set(verification, of: account.number, recording: .counting) == .yes)
        #expect(try make().verification(of: account.number) == verification)
        #expect(key.isAuthentic(verification, of: account.number))
        #expect(!key.isAuthentic(verification, of: account.number + 1), "another account's row")
        let range = account.number...account.number + 5
        #expect(try make().verifications(of: account.app, numbered: range) == [account.number: verification])
        #expect(try make().verifications(of: #require(AppName("demo")), numbered: range) == [:])
        #expect(
            try make().verifications(of: account.app, numbered: account.number + 1...account.number + 5)
                == [:])
        // All goes with the account.
        let removal = try make().change(
            account.number, if: .anything, applying: .remove, at: 800, recording: .counting)
        guard case .yes = removal else { throw OperationalError(.failed, message: "not removed") }
        #expect(try make().verification(of: account.number) == nil)
        #expect(try make().accountCodes(of: account.number) == [])
        #expect(try make().set(verification, of: account.number, recording: .counting) == .missing)
        #expect(try redeem("11111111", of: account, under: key, at: 300) == (.none, false))
    }
}
