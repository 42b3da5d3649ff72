// Proves the bucket of a rate by a given clock: what is allowed at once and after a time, that a refusal
// counts nothing at any party, and what a response says about it.
import CountersignGate
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
        count.share = Array("a\0\(part)".utf8)
        return count
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
