// Proves the bucket of a rate by a given clock: what is allowed at once and after a time, that a refusal
// counts nothing at any party, and what a response says about it.
import CountersignAuthority
import CountersignGate
import CountersignWire
import Testing

@testable import CountersignServer

@Suite("Rate counter")
struct RateCounterTests {
    private let counter = RateCounter()
    private static let second: Int64 = 1_000_000

    private func count(_ rate: String, of party: String = "a") throws -> RateCounter.Count {
        RateCounter.Count(name: party, rate: try #require(RequestRate(rate)), key: Array(party.utf8))
    }

    private func isAllowed(_ counts: [RateCounter.Count], at seconds: Double) -> Bool {
        if case .allowed = counter.take(counts, at: Int64(seconds * Double(Self.second))) {
            true
        } else {
            false
        }
    }

    @Test(
        "how many of ten requests at once, and after how long one more",
        arguments: [
            ("3/second", 3, 1.0 / 3), ("1/minute", 1, 60), ("60/minute,burst=2", 2, 1),
            ("2/second,burst=9", 9, 0.5), ("1/day", 1, 86_400), ("1000/second,burst=1", 1, 0.001),
        ] as [(String, Int, Double)])
    func bucket(rate: String, atOnce: Int, refill: Double) throws {
        let counts = [try count(rate)]
        #expect((0..<10).count { _ in isAllowed(counts, at: 100) } == atOnce)
        #expect(!isAllowed(counts, at: 100 + refill * 0.99))
        #expect(isAllowed(counts, at: 100 + refill * 1.001))
        #expect(!isAllowed(counts, at: 100 + refill * 1.001))
        // After a long time there is one full allowance, and no more.
        #expect((0..<10).count { _ in isAllowed(counts, at: 1_000_000) } == atOnce)
    }

    private func count(_ rate: String, from part: String) throws -> RateCounter.Count {
        var count = try count(rate)
        count.shares = [Array("a\0\(part)".utf8)]
        return count
    }

    private func count(_ rate: String, fromAddress text: String) throws -> RateCounter.Count {
        var count = try count(rate)
        let address = try #require(NetworkAddress(text: text))
        let origin = ClientAddress(address.bytes.span)
        count.shares = try #require(origin).nestedKeys
        return count
    }

    /// How many requests of each origin are served in `seconds` at 60 a minute, once the allowance is used.
    /// Each of the attackers asks ten times a second, and before the others; they ask twice a second.
    private func served(
        _ others: [String], beside attackers: [String], for seconds: Int
    ) throws -> (others: [Int], attackers: Int) {
        let attackers = try attackers.map { try count("60/minute", fromAddress: $0) }
        let others = try others.map { try count("60/minute", fromAddress: $0) }
        for attacker in attackers + attackers { for _ in 0..<60 { _ = isAllowed([attacker], at: 1_000) } }
        var served = (others: [Int](repeating: 0, count: others.count), attackers: 0)
        // All are known at first.
        for step in -100..<seconds * 10 {
            let time = 1_011 + Double(step) / 10
            for attacker in attackers where isAllowed([attacker], at: time) && step >= 0 {
                served.attackers += 1
            }
            guard step % 5 == 0 else { continue }
            for (number, other) in others.enumerated() where isAllowed([other], at: time) && step >= 0 {
                served.others[number] += 1
            }
        }
        return served
    }

    @Test(
        "the networks of one party have one share together",
        arguments: ["2001:db8:7:%::1", "2001:db8:7:%00::1"])
    func networks(pattern: String) throws {
        let attackers = (1...60).map { number in
            pattern.split(separator: "%").joined(separator: String(number, radix: 16))
        }
        let served = try served(["2001:db8:9::1"], beside: attackers, for: 100)
        #expect(served.others[0] >= 40, "about half of the rate: \(served)")
        #expect(served.others[0] + served.attackers >= 85, "all of the rate is used: \(served)")
    }

    @Test("a request counts to the networks around its address")
    func sharesOfAnAddress() throws {
        func shares(_ text: String) -> [[UInt8]] {
            TrafficControl.shares(of: NetworkAddress(text: text), in: ["release"])
        }
        let (one, near, far) = (
            shares("2001:db8:7:1::1"), shares("2001:db8:7:2::1"), shares("2001:db8:7:100::1")
        )
        #expect(one.count == 3 && one == shares("2001:db8:7:1::2"))
        #expect(near[..<2] == one[..<2] && near[2] != one[2])
        #expect(far[0] == one[0] && far[1] != one[1])
        #expect(shares("192.0.2.1").count == 1 && shares("192.0.2.1") != shares("192.0.2.2"))
    }

    @Test("within a network, its parts share what it gets")
    func partsOfANetwork() throws {
        let attackers = (1...30).map { "2001:db8:7:\(String($0, radix: 16))::1" }
        let served = try served(["2001:db8:7:ff01::1", "2001:db8:9::1"], beside: attackers, for: 200)
        #expect(served.others[0] >= 30 && served.others[1] >= 80, "a quarter and a half: \(served)")
    }

    @Test("of many parties each has its turn, however often the others ask")
    func turns() throws {
        let attackers = (1...20).map { "192.0.2.\($0)" }
        let served = try served(["198.51.100.1"], beside: attackers, for: 210)
        #expect(served.others[0] >= 7, "about a twenty-first of the rate: \(served)")
        #expect(served.others[0] + served.attackers >= 185, "nearly all of the rate is used: \(served)")
    }

    @Test(
        "one part may use the whole rate until another asks, and then leaves something to it",
        arguments: ["4/second", "20/second", "60/minute,burst=5", "1000/second"])
    func shares(rate: String) throws {
        let (flood, other) = (try count(rate, from: "flood"), try count(rate, from: "other"))
        let refill = Double(flood.rate.refillMicroseconds) / Double(Self.second)
        let burst = flood.rate.burst
        #expect((0..<burst + 5).count { _ in isAllowed([flood], at: 100) } == burst)
        // The other one asks eight times, each time when two requests have refilled; the flood asks forty
        // times in each of these intervals, and first.
        var served = 0
        for step in 1...40 * 8 {
            let time = 100 + Double(step) * refill / 20
            _ = isAllowed([flood], at: time)
            if step % 40 == 0, isAllowed([other], at: time) { served += 1 }
        }
        #expect(served >= 7, "all but the first, which is not known yet: \(served)")
        // Nobody else asks for a long time, and the whole rate is the first one's again.
        let later = 1_000_000.0
        #expect((0..<burst + 5).count { _ in isAllowed([flood], at: later) } == burst)
    }

    @Test("a request that one rate refuses counts to no other")
    func together() throws {
        let (wide, narrow) = (try count("5/hour", of: "wide"), try count("1/hour", of: "narrow"))
        #expect(isAllowed([wide, narrow], at: 1))
        for _ in 0..<100 { #expect(!isAllowed([wide, narrow], at: 1)) }
        #expect((0..<10).count { _ in isAllowed([wide], at: 1) } == 4)
    }

    @Test("the state is that of the rate with the least left, with times rounded up")
    func states() throws {
        let (wide, narrow) = (try count("10/hour", of: "wide"), try count("2/minute", of: "narrow"))
        #expect(
            counter.take([wide, narrow], at: 0)
                == .allowed(.init(name: "narrow", rate: narrow.rate, remaining: 1, reset: 30)))
        #expect(
            counter.take([wide, narrow], at: 0)
                == .allowed(.init(name: "narrow", rate: narrow.rate, remaining: 0, reset: 60)))
        #expect(
            counter.take([wide, narrow], at: Self.second / 2)
                == .refused(.init(name: "narrow", rate: narrow.rate, remaining: 0, reset: 60), wait: 30))
    }

    @Test("a flood of other parties gives none of its requests back, whatever their rate is")
    func flood() throws {
        let victims = try (0..<64).map { [try count("2/day", of: "victim\($0)")] }
        for victim in victims { #expect(isAllowed(victim, at: 1) && isAllowed(victim, at: 1)) }
        for number in 0..<200_000 { _ = isAllowed([try count("1000/second", of: "f\(number)")], at: 1) }
        for victim in victims { #expect(!isAllowed(victim, at: 2)) }
        for number in 0..<200_000 { _ = isAllowed([try count("2/day", of: "g\(number)")], at: 2) }
        for victim in victims { #expect(!isAllowed(victim, at: 3)) }
    }
}
