import CountersignWire
import Testing

@testable import CountersignHTTP

/// Addresses are told apart by subscriber, each has one record for as long as it is in use, budgets run out
/// and fill up again, and the table stays bounded.
@Suite struct AddressTests {
    private func address(_ text: String) throws -> NetworkAddress { try #require(NetworkAddress(text: text)) }

    @Test(arguments: [
        ("192.0.2.1", "192.0.2.1", "192.0.2.1"), ("::ffff:192.0.2.1", "192.0.2.1", "192.0.2.1"),
        ("2001:db8::1", "2001:db8::1", "2001:db8::/64"), ("::1", "::1", "::/64"),
        ("0.0.0.0", "0.0.0.0", "0.0.0.0"),
    ])
    func readsAndShows(text: String, shown: String, subscriber: String) throws {
        let address = try address(text)
        #expect(address.text == shown)
        #expect(address.subscriber.text == subscriber)
        #expect(NetworkAddress(bytes: address.bytes.span) == address)
    }

    @Test(arguments: ["", "192.0.2", "192.0.2.1:80", "[::1]", "fe80::1%eth0", "x"])
    func refuses(text: String) { #expect(NetworkAddress(text: text) == nil) }

    @Test func hasOneRecordForASubscriber() throws {
        let table = AddressTable()
        let first = table.acquire(try address("2001:db8:1:2:3::4"), now: 0)
        let second = table.acquire(try address("2001:db8:1:2::9"), now: 0)
        let neighbour = table.acquire(try address("2001:db8:1:3::9"), now: 0)
        #expect(first === second)
        #expect(first !== neighbour)
        #expect(first.wider === neighbour.wider)
        #expect(first.wider?.address.text == "2001:db8:1::/56")
        #expect(first.wider?.wider?.address.text == "2001:db8:1::/48")
    }

    @Test func takesTokensUntilTheyAreUsedUp() {
        for budget in AddressBudget.allCases {
            let record = AddressRecord(address: .unknown)
            let most = Int(budget.tokens.most)
            #expect((0..<most).allSatisfy { _ in record.take(budget, now: 1_000_000) })
            #expect(!record.take(budget, now: 1_000_000))
            #expect(!record.isRested(now: 1_000_000))
            // A loop whose clock is a second behind gets none either.
            #expect(!record.take(budget, now: 999_999))
            let gained = Int(budget.tokens.perSecond)
            #expect((0..<gained).allSatisfy { _ in record.take(budget, now: 1_000_001) })
            #expect(!record.take(budget, now: 1_000_001))
            #expect(record.isRested(now: 1_000_100))
        }
    }

    @Test func aNetworkAroundHasABudgetToo() throws {
        let table = AddressTable()
        // 256 subscribers of one /56: their home has four budgets, and not 256.
        let records = try (0..<256).map {
            table.acquire(try address("2001:db8:0:\(String($0, radix: 16))::1"), now: 0)
        }
        let taken = records.reduce(0) { sum, record in
            sum + (0..<20).count { _ in record.take(.explanation, now: 5) }
        }
        #expect(taken == 4 * 20)
    }

    @Test func forgetsWhatIsUnusedAndRestedFirst() throws {
        let table = AddressTable(most: 64 * 16)
        let used = table.acquire(try address("198.51.100.1"), now: 0)
        let spent = table.acquire(try address("198.51.100.2"), now: 0)
        table.release(spent)
        while spent.take(.signedRefusal, now: 0) {}
        for number in 0..<20_000 {
            let record = table.acquire(try address("10.0.\(number / 256).\(number % 256)"), now: 0)
            table.release(record)
        }
        #expect(table.count <= 64 * 16)
        #expect(table.acquire(try address("198.51.100.1"), now: 0) === used)
        #expect(table.acquire(try address("198.51.100.2"), now: 0) === spent)
    }

    @Test func keepsWhatIsInUseBeyondItsBound() throws {
        let table = AddressTable(most: 64)
        let records = try (0..<1_000).map {
            table.acquire(try address("2001:db8:\(String($0, radix: 16))::1"), now: 0)
        }
        for (number, record) in records.enumerated() {
            #expect(table.acquire(try address("2001:db8:\(String(number, radix: 16))::2"), now: 0) === record)
        }
        for record in records {
            table.release(record)
            table.release(record)
        }
        for number in 0..<20_000 {
            table.release(table.acquire(try address("10.1.\(number / 256).\(number % 256)"), now: 9))
        }
        #expect(table.count <= 64 * 3)
    }

    @Test func countsWithinALimitHereAndAround() throws {
        let table = AddressTable()
        let record = table.acquire(try address("2001:db8::1"), now: 0)
        #expect(record.usage.reserve(10, of: .connections, limit: 10))
        #expect(!record.usage.reserve(1, of: .connections, limit: 10))
        #expect(record.wider?.usage.value(of: .connections) == 10)
        record.usage.count(-10, of: .connections)
        #expect(record.wider?.usage.value(of: .connections) == 0)
        // Other subscribers of the same home reach its limit together.
        let others = try (1..<8).map { table.acquire(try address("2001:db8:0:\($0)::1"), now: 0) }
        #expect(others.count { $0.usage.reserve(10, of: .connections, limit: 10) } == 4)
        #expect(!record.usage.reserve(1, of: .connections, limit: 10))
    }
}
