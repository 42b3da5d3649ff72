import CountersignAuthority
import CountersignGate
import CountersignSeal
import CountersignWire
import ScriptedClock
import Testing

/// Codes of accounts: up to five of a purpose live side by side, each with tries of its own; a right one uses
/// up all of its purpose. Verifications: set, taken back, and gone with the account.
extension StoreContract {
    package func accountCodes() throws {
        let account = try added(accountDraft("coded"))
        let key = AccountCodeKey(derivedFrom: Secret(copying: [UInt8](repeating: 1, count: 32).span))
        try codesAreRedeemed(account, under: key)
        try codesLiveSideBySide(account, under: key)
        try codesHaveAPace(account, under: key)
        try purposesAreBounded(account, under: key)
        try verifications(account, under: key)
    }

    private func entered(_ digits: String) throws -> AccountCode { try #require(AccountCode(typed: digits)) }

    private func code(
        _ digits: String, for purpose: CodePurpose = .verify, of account: Account, under key: AccountCodeKey,
        made: Int64 = 100, until expires: Int64
    ) throws -> StoredAccountCode {
        key.stored(try entered(digits), for: purpose, of: account.number, made: made, until: expires)
    }

    private func add(
        _ code: StoredAccountCode, of account: Account
    ) throws -> AccountCodeInsertOutcome {
        try make().add(code, of: account.number, at: code.made, recording: .counting)
    }

    private func redeem(
        _ digits: String, for purpose: CodePurpose = .verify, _ id: AccountCodeID? = nil, of account: Account,
        under key: AccountCodeKey, at now: Int64 = 100
    ) throws -> (verdict: AccountCodeAttempt.Verdict, isRecorded: Bool) {
        let attempt = AccountCodeAttempt(
            try entered(digits), for: purpose, id, of: account.number, under: key, at: now)
        let before = try make().auditRows(after: 0, limit: 100_000).count
        let verdict = try make().redeem(attempt) { $0 == .none ? nil : .counting }
        return (verdict, try make().auditRows(after: 0, limit: 100_000).count == before + 1)
    }

    /// The tries that are left of the codes of the purpose, in the order in which they were made.
    private func triesLeft(_ account: Account, for purpose: CodePurpose = .verify) throws -> [Int64] {
        try make().accountCodes(of: account.number).filter { $0.purpose == purpose }.map(\.triesLeft)
    }

    private func codesAreRedeemed(_ account: Account, under key: AccountCodeKey) throws {
        #expect(try make().accountCodes(of: account.number) == [])
        #expect(try redeem("12345678", of: account, under: key).verdict == .none)
        let code = try code("12345678", of: account, under: key, until: 200)
        #expect(try add(code, of: account) == .yes)
        #expect(try make().accountCodes(of: account.number) == [code])
        let other = try #require(CodePurpose("sign-in"))
        #expect(try redeem("12345678", for: other, of: account, under: key).verdict == .none)
        #expect(try redeem("12345678", of: account, under: key, at: 200).verdict == .none, "it has expired")
        for left in stride(from: StoredAccountCode.mostTries - 1, through: 1, by: -1) {
            let (verdict, isRecorded) = try redeem("12345679", code.id, of: account, under: key)
            guard case .wrong(let rest) = verdict else {
                throw OperationalError(.failed, message: "\(verdict)")
            }
            #expect(rest.triesLeft == left && isRecorded)
        }
        let (verdict, isRecorded) = try redeem("1234 5678", of: account, under: key)
        #expect(verdict == .right && isRecorded)
        #expect(try make().verification(of: account.number) == 100)
        #expect(try redeem("12345678", of: account, under: key) == (.none, false), "it is used up")
        // After the last try the right one is refused, too. Its row still counts for the pace.
        #expect(try add(code, of: account) == .yes)
        for _ in 0..<StoredAccountCode.mostTries {
            _ = try redeem("00000000", code.id, of: account, under: key)
        }
        #expect(try redeem("12345678", of: account, under: key) == (.none, false))
        #expect(try triesLeft(account) == [0])
        #expect(try make().forgetAccountCodes(madeBefore: 100, limit: 9) == 0)
        #expect(try make().forgetAccountCodes(madeBefore: 101, limit: 9) == 1)
        #expect(try make().set(verification: nil, of: account.number, recording: .counting) == .yes)
    }

    /// A stranger has codes made, and enters wrong ones: the owner's codes stay as they are.
    private func codesLiveSideBySide(_ account: Account, under key: AccountCodeKey) throws {
        let owners = try code("12345678", of: account, under: key, until: 1_000)
        #expect(try add(owners, of: account) == .yes)
        var strangers: [StoredAccountCode] = []
        for number in 1..<CodePace.mostLive {
            strangers.append(
                try code("1111111\(number)", of: account, under: key, made: 100 + Int64(number), until: 900))
            #expect(try add(#require(strangers.last), of: account) == .yes)
        }
        let sixth = try code("22222222", of: account, under: key, made: 110, until: 900)
        #expect(try add(sixth, of: account) == .refused(.full(until: 900)))
        for _ in 0..<2 * StoredAccountCode.mostTries {
            _ = try redeem("99999999", strangers[0].id, of: account, under: key, at: 120)
        }
        #expect(try redeem("99999999", AccountCodeID(), of: account, under: key, at: 120) == (.none, false))
        #expect(try triesLeft(account) == [5, 0, 5, 5, 5])
        // With another code's id, the right digits are a wrong code.
        guard case .wrong = try redeem("12345678", strangers[1].id, of: account, under: key, at: 120).verdict
        else { throw OperationalError(.failed, message: "the code of another id") }
        #expect(try triesLeft(account) == [5, 0, 4, 5, 5])
        try unnamedGuessesAreBounded(account, under: key)
        #expect(try triesLeft(account) == [5, 0, 4, 5, 5], "no code has lost a try")
        #expect(try redeem("12345678", owners.id, of: account, under: key, at: 120).verdict == .right)
        #expect(try make().accountCodes(of: account.number) == [], "all of the purpose are used up")
        // The budget outlives them, and has one entry an hour. Any of them is accepted without an id.
        let later = 120 + CodePace.interval
        let fresh = try code("12345678", of: account, under: key, made: 200, until: later + 9)
        #expect(try add(fresh, of: account) == .yes)
        guard case .exhausted = try redeem("12345678", of: account, under: key, at: later - 1).verdict else {
            throw OperationalError(.failed, message: "a budget that a right code filled")
        }
        #expect(
            try redeem("99999999", of: account, under: key, at: later).verdict
                == .wrongWithoutID(UnnamedGuesses(left: 0, since: later)))
        #expect(try make().forgetAccountCodes(madeBefore: .at(later + 1), limit: 9) == 2)
        #expect(try add(fresh, of: account) == .yes)
        #expect(try redeem("12345678", of: account, under: key, at: later).verdict == .right)
        #expect(try make().set(verification: nil, of: account.number, recording: .counting) == .yes)
    }

    /// Wrong entries without an id cost no code a try. There are 25, and then one an hour.
    private func unnamedGuessesAreBounded(_ account: Account, under key: AccountCodeKey) throws {
        let (first, isRecorded) = try redeem("99999999", of: account, under: key, at: 120)
        let left = UnnamedGuesses.most - 1
        #expect(first == .wrongWithoutID(UnnamedGuesses(left: left, since: 120)) && isRecorded)
        // Unrecorded: the log of the tests has room for 255 records.
        let attempt = AccountCodeAttempt(
            try entered("99999999"), for: .verify, of: account.number, under: key, at: 120)
        for left in (0..<left).reversed() {
            let verdict = try make().redeem(attempt) { _ in nil }
            #expect(verdict == .wrongWithoutID(UnnamedGuesses(left: left, since: 120)))
        }
        let exhausted = UnnamedGuesses(left: 0, since: 120)
        for digits in ["99999999", "12345678"] {
            let (verdict, _) = try redeem(digits, of: account, under: key, at: 120)
            #expect(verdict == .exhausted(exhausted), "the right one is compared no more, either")
        }
        // Another purpose has a budget of its own, and the row of the budget is no code.
        let budget = AccountCodeID.unnamedGuesses(at: .verify)
        #expect(try redeem("12345678", budget, of: account, under: key, at: 120).verdict == .none)
        #expect(try make().accountCodes(of: account.number).allSatisfy { $0.id != budget })
    }

    /// Five in a day, then one an hour: whoever asks for codes all the time gets 28 in a day.
    private func codesHaveAPace(_ account: Account, under key: AccountCodeKey) throws {
        let purpose = try #require(CodePurpose("sign-in"))
        var made: [Int64] = []
        var now: Int64 = 1_000_000
        let end = now + CodePace.period
        while now < end {
            let next = try code("12345678", for: purpose, of: account, under: key, made: now, until: now + 60)
            switch try add(next, of: account) {
            case .yes: made.append(now)
            case .refused(.early(let until)), .refused(.full(let until)):
                #expect(until > now)
                now = until
            case let outcome: throw OperationalError(.failed, message: "\(outcome)")
            }
        }
        #expect(made.count == CodePace.mostInPeriod && made.count == 28)
        #expect(Set(made.prefix(5)).count == 1 && Set(made).count == made.count - 4)
        // Rows that are a day old count for nothing.
        #expect(try make().forgetAccountCodes(madeBefore: 1_000_001, limit: 3) == 3)
        #expect(try make().forgetAccountCodes(madeBefore: .at(end), limit: 100) == 25)
    }

    private func purposesAreBounded(_ account: Account, under key: AccountCodeKey) throws {
        func add(_ number: Int, made: Int64, until expires: Int64) throws -> AccountCodeInsertOutcome {
            let purpose = try #require(CodePurpose("purpose-\(number)"))
            return try self.add(
                code("11111111", for: purpose, of: account, under: key, made: made, until: expires),
                of: account)
        }
        for number in 1...StoredAccountCode.mostPurposes {
            #expect(try add(number, made: 100, until: Int64(300 + number)) == .yes)
        }
        #expect(try add(99, made: 100, until: 300) == .full, "there are as many as there may be")
        #expect(try add(1, made: 100, until: 301) == .yes, "one of the same purpose")
        #expect(try add(99, made: 301, until: 500) == .yes, "those of one purpose have expired")
        let nobody = try code("11111111", of: account, under: key, made: 1, until: 9)
        #expect(try make().add(nobody, of: .max, at: 1, recording: .counting) == .missing)
    }

    private func verifications(_ account: Account, under key: AccountCodeKey) throws {
        #expect(try make().verification(of: account.number) == nil)
        #expect(try make().set(verification: nil, of: account.number, recording: .counting) == .missing)
        for time in [699, 700] as [Int64] {
            #expect(try make().set(verification: time, of: account.number, recording: .counting) == .yes)
        }
        #expect(try make().verification(of: account.number) == 700)
        let range = account.number...account.number + 5
        #expect(try make().verifications(of: account.app, numbered: range) == [account.number: 700])
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
        #expect(try make().set(verification: 700, of: account.number, recording: .counting) == .missing)
        #expect(try redeem("11111111", of: account, under: key, at: 300) == (.none, false))
    }
}
