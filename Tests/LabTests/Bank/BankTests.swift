import CountersignLab
import Testing

@Suite struct BankTests {
    private func bank() throws -> Bank {
        let bank = try Bank(folder: try newFolder())
        try bank.open(name: "anna", userID: 1)
        try bank.open(name: "bob", userID: 2)
        return bank
    }

    @Test func moneyMovesWhole() throws {
        let bank = try bank()
        #expect(try bank.transfer(30, from: "anna", to: "bob", note: "rent") == .moved(30))
        #expect(try bank.balance(of: "anna") == Bank.openingBalance - 30)
        #expect(try bank.balance(of: "bob") == Bank.openingBalance + 30)
        let entry = try #require(try bank.journal().first)
        #expect((entry.from, entry.to, entry.amount, entry.note) == ("anna", "bob", 30, "rent"))
    }

    @Test(arguments: [0, -5, Bank.openingBalance + 1]) func noOverdraftAndNothingBackwards(_ amount: Int)
        throws
    {
        let bank = try bank()
        guard case .refused = try bank.transfer(amount, from: "anna", to: "bob") else {
            Issue.record("\(amount) was moved")
            return
        }
        #expect(try bank.balance(of: "anna") == Bank.openingBalance)
        #expect(try bank.journal().isEmpty)
    }

    @Test func anUnknownPayeeGetsNothing() throws {
        let bank = try bank()
        guard case .refused = try bank.transfer(5, from: "anna", to: "nobody") else {
            Issue.record("money went to nobody")
            return
        }
        #expect(try bank.balance(of: "anna") == Bank.openingBalance)
    }

    @Test func everyAccountHasASecretOfItsOwn() throws {
        let bank = try bank()
        #expect(try bank.cardNumber(of: "anna") != bank.cardNumber(of: "bob"))
        #expect(try bank.cardNumber(of: "anna").hasPrefix("card 4929 "))
    }

    @Test func manyTransfersAtOnceLoseNothing() async throws {
        let bank = try bank()
        await withTaskGroup(of: Void.self) { group in
            for _ in 0..<50 { group.addTask { _ = try? bank.transfer(3, from: "anna", to: "bob") } }
        }
        #expect(try bank.balance(of: "anna") == Bank.openingBalance - 150)
        #expect(try bank.balance(of: "bob") == Bank.openingBalance + 150)
    }

    @Test func theUpstreamBelievesTheGateway() throws {
        let bank = try bank()
        let upstream = try BankUpstream(bank)
        defer { upstream.stop() }
        let order = "to=bob&amount=10&user=bob"
        for account in ["id:1", "name:%61nna"] {
            let answer = try exchange(
                upstream.port, .form("/transfer", order, fields: [("Countersign-Account", account)]))
            #expect(answer.text == #"{"moved":10}"#)
        }
        #expect(try bank.balance(of: "anna") == Bank.openingBalance - 20)
        for untyped in ["1", "anna", "id:1e0", "id:", ""] {
            let answer = try exchange(
                upstream.port, .form("/transfer", order, fields: [("Countersign-Account", untyped)]))
            #expect(answer.status == 401, "\(untyped)")
        }
    }

    @Test func whereNobodyIsSignedInTheAppSaysWhoseMoneyItIs() throws {
        let bank = try bank()
        let upstream = try BankUpstream(bank)
        defer { upstream.stop() }
        let answer = try exchange(upstream.port, .form("/transfer?user=bob", "to=bob&amount=10&user=anna"))
        #expect(answer.text == #"{"moved":10}"#)
        #expect(try bank.balance(of: "anna") == Bank.openingBalance - 10)
        #expect(try exchange(upstream.port, .form("/transfer", "to=bob&amount=10")).status == 401)
        let balance = try exchange(upstream.port, RawRequest(method: "GET", target: "/balance?user=anna"))
        #expect(balance.text.contains(try bank.cardNumber(of: "anna")))
    }

    @Test func ofSeveralMembersTheLastCounts() throws {
        let bank = try bank()
        let upstream = try BankUpstream(bank)
        defer { upstream.stop() }
        let text = #"{"to":"anna","to":"bob","amount":7,"user":"anna"}"#
        let answer = try exchange(
            upstream.port, .form("/transfer", text, fields: [("Content-Type", "application/json")]))
        #expect(answer.text == #"{"moved":7}"#)
        #expect(try bank.balance(of: "bob") == Bank.openingBalance + 7)
    }
}

@Suite struct WordListTests {
    @Test func noTwoAreAlike() {
        let words = WordList.standard.all
        #expect(words.count == 20_000)
        #expect(Set(words).count == words.count)
        #expect(words.contains(WordList.standard.random()))
    }
}
