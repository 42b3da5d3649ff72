// Proves that verified callers share a bound: one that is alone may use all, one that floods leaves something to
// each that asks seldom, and release keys alone leave something to sessions, from however many networks.
import CountersignAuthority
import CountersignHTTP
import CountersignWire
import Testing

@testable import CountersignServer

@Suite("Bounds that verified callers share") struct VerifiedBudgetTests {
    /// 60 at once, and one more each second.
    private static let limit = RateLimit(burst: 60, interval: 1_000_000)

    private static func network(_ text: String) -> VerifiedParty {
        VerifiedParty(.release, from: NetworkAddress(text: text) ?? .unknown)
    }

    private static func account(_ number: Int64) -> VerifiedParty {
        VerifiedParty(.session(account: number), from: .unknown)
    }

    private func taken(
        _ budget: inout VerifiedBudget, of count: Int, for party: VerifiedParty, at second: Double
    ) -> Int {
        (0..<count).count { _ in
            budget.take(of: VerifiedBudgetTests.limit, for: party, at: Int64(second * 1_000_000))
        }
    }

    @Test(arguments: [network("192.0.2.1"), account(1)])
    func onePartyAloneMayUseAllThatPasses(party: VerifiedParty) {
        var passing = VerifiedBudget(.whileOthersAsk)
        #expect(taken(&passing, of: 1_000, for: party, at: 100) == 60)
        #expect(taken(&passing, of: 1_000, for: party, at: 110) == 10)
        #expect(taken(&passing, of: 1_000, for: party, at: 10_000) == 60)
        var remaining = VerifiedBudget(.always)
        #expect(taken(&remaining, of: 1_000, for: party, at: 100) == 20)
    }

    private static let floods: [(flood: [VerifiedParty], other: VerifiedParty)] = [
        ([network("192.0.2.1")], network("192.0.2.2")),
        ([account(1)], account(2)),
        ([network("192.0.2.1")], account(2)),
        ([account(1)], network("192.0.2.2")),
        ((0..<200).map { network("2001:db8:0:\(String($0, radix: 16))::1") }, network("2001:db8:1::1")),
        ((0..<200).map { network("192.0.2.\($0)") }, account(2)),
    ]

    @Test(arguments: [VerifiedBudget.Sharing.whileOthersAsk, .always], floods.indices)
    func aFloodLeavesSomethingToOneThatAsksSeldom(sharing: VerifiedBudget.Sharing, number: Int) {
        let (flood, other) = Self.floods[number]
        var budget = VerifiedBudget(sharing)
        for party in flood { _ = taken(&budget, of: 100, for: party, at: 100) }
        _ = taken(&budget, of: 1, for: other, at: 100)
        // The other one asks once in eight seconds, and the flood asks all the time, and first.
        var served = 0
        for step in 1...100 {
            for party in flood { _ = taken(&budget, of: 20, for: party, at: 100 + Double(step)) }
            if step % 8 == 0 { served += taken(&budget, of: 1, for: other, at: 100 + Double(step)) }
        }
        #expect(served >= 11, "\(served) of 12")
    }

    @Test func anIPv6SiteIsOneParty() {
        #expect(Self.network("2001:db8::1") == Self.network("2001:db8:0:ff::2"))
        #expect(Self.network("2001:db8::1") != Self.network("2001:db8:0:100::1"))
        #expect(Self.network("192.0.2.1") != Self.network("192.0.2.2"))
    }

    @Test func aLargeUseCountsAsMuch() {
        var budget = VerifiedBudget(.always)
        let party = VerifiedBudgetTests.account(1)
        let taken = (0..<100).count { _ in
            budget.take(8, of: VerifiedBudgetTests.limit, for: party, at: 0)
        }
        #expect(taken == 3, "24 of 60")
    }
}
