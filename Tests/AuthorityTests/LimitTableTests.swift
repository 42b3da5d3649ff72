import CountersignAuthority
import CountersignSeal
import CountersignWire
import Testing

@Suite struct LimitTableTests {
    private static let allowance = RateLimit(burst: 5, refillInterval: .seconds(10))
    private static let hashKey = KeyedHash.Key { UInt8($0) }

    private func table(_ allowance: RateLimit = allowance, capacity: Int = 4096) -> LimitTable {
        LimitTable(allowance, capacity: capacity, hashKey: LimitTableTests.hashKey)
    }

    @Test("an allowance is used up, and grows back one attempt an interval")
    func bucket() {
        let table = table()
        for _ in 0..<5 { #expect(table.allows("bob", at: 1_000_000)) }
        #expect(table.debit(key("bob").span, at: 1_000_000) == .refused(10_000))
        #expect(table.debit(key("bob").span, at: 1_009_999) == .refused(1))
        #expect(table.allows("bob", at: 1_010_000))
        #expect(!table.allows("bob", at: 1_010_000))
        #expect(table.allows("eve", at: 1_010_000))
        // The burst is full again, and never more than full.
        for _ in 0..<5 { #expect(table.allows("bob", at: 9_000_000)) }
        #expect(!table.allows("bob", at: 9_000_000))
    }

    @Test("against a model that keeps every key", arguments: 0..<20)
    func model(_ seed: UInt64) {
        let table = table(RateLimit(burst: 3, refillInterval: .milliseconds(100)))
        var model = Model(burst: 3, interval: 100)
        var random = SplitMix64(seed: seed)
        var now: Int64 = 1_000_000
        var outstanding: [(String, LimitTable.Debit, Int64)] = []
        for _ in 0..<3_000 {
            now += Int64.random(in: 0...60, using: &random)
            let name = "key \(Int.random(in: 0..<8, using: &random))"
            if Int.random(in: 0..<4, using: &random) == 0,
                let index = outstanding.indices.randomElement(using: &random)
            {
                let (key, debit, at) = outstanding.remove(at: index)
                table.refund(debit, at: now)
                model.refund(key, debitedAt: at, at: now)
            } else {
                let outcome = table.debit(key(name).span, at: now)
                let wait = model.debit(name, at: now)
                switch outcome {
                case .allowed(let debit):
                    #expect(wait == nil)
                    outstanding.append((name, debit, now))
                case .refused(let milliseconds): #expect(wait == milliseconds)
                }
            }
        }
    }

    @Test("however it is refunded, nobody gets more than a whole allowance")
    func hoarding() {
        // Login starts that are refunded late must not refund more than they cost.
        let table = table()
        var open: [LimitTable.Debit] = []
        var now: Int64 = 1_000_000
        for _ in 0..<100 {
            if case .allowed(let debit) = table.debit(key("bob").span, at: now) { open.append(debit) }
            now += 10_000
        }
        for debit in open { table.refund(debit, at: now) }
        var allowed = 0
        while table.allows("bob", at: now) { allowed += 1 }
        #expect(open.count == 100 && allowed == 5)
    }

    @Test("a refund gives back the attempt")
    func refund() throws {
        let table = table()
        for _ in 0..<50 {
            guard case .allowed(let debit) = table.debit(key("bob").span, at: 1_000_000) else {
                Issue.record("a refunded attempt was counted")
                return
            }
            table.refund(debit, at: 1_000_000)
        }
    }

    @Test("a clock that is set back locks nobody out for longer than a span")
    func clockSetBack() {
        let table = table()
        for _ in 0..<5 { #expect(table.allows("bob", at: 1_000_000_000)) }
        guard case .refused(let wait) = table.debit(key("bob").span, at: 1_000) else {
            Issue.record("forgotten")
            return
        }
        #expect(wait == 10_000)
        // An attempt after the stated wait is admitted, and one span later the whole burst is available
        // again.
        #expect(table.allows("bob", at: 1_000 + wait))
        for _ in 0..<5 { #expect(table.allows("bob", at: 1_000 + wait + 60_000)) }
    }

    @Test("exact, however many threads count at once")
    func threads() async {
        let table = table(RateLimit(burst: 500, refillInterval: .seconds(60)))
        let allowed = await withTaskGroup(of: [Int].self) { group in
            for _ in 0..<8 {
                group.addTask {
                    var allowed = [0, 0, 0, 0]
                    for attempt in 0..<1_000 where table.allows("key \(attempt % 4)", at: 1_000_000) {
                        allowed[attempt % 4] += 1
                    }
                    return allowed
                }
            }
            return await group.reduce([0, 0, 0, 0]) { sum, next in (0..<4).map { sum[$0] + next[$0] } }
        }
        #expect(allowed == [500, 500, 500, 500])
    }

    @Test("a flood of keys washes no counter away, and locks nobody out for longer than a span")
    func flood() {
        let table = table(LimitTableTests.allowance, capacity: 1)
        let now: Int64 = 1_000_000
        for _ in 0..<5 { #expect(table.allows("victim", at: now)) }
        // Many times the capacity of the table.
        var floodAllowed = 0
        for number in 0..<200_000 where table.allows("flood \(number)", at: now) { floodAllowed += 1 }
        #expect(floodAllowed < 200_000)
        #expect(!table.allows("victim", at: now))
        for number in 0..<100 {
            switch table.debit(key("newcomer \(number)").span, at: now) {
            case .allowed: break
            case .refused(let wait): #expect(wait <= LimitTableTests.span)
            }
        }
        #expect(table.allows("anybody", at: now + LimitTableTests.span))
    }

    @Test("while there is room, strangers' keys do not touch each other")
    func room() {
        let table = table(LimitTableTests.allowance, capacity: 1 << 14)
        for number in 0..<4_000 {
            for _ in 0..<5 { #expect(table.allows("key \(number)", at: 1_000_000)) }
        }
        #expect((0..<4_000).allSatisfy { !table.allows("key \($0)", at: 1_000_000) })
    }

    fileprivate static let span: Int64 = 50_000
}

func key(_ name: String) -> [UInt8] { Array(name.utf8) }

extension LimitTable {
    func allows(_ name: String, at now: Int64) -> Bool {
        if case .allowed = debit(key(name).span, at: now) { true } else { false }
    }
}

/// A reference model: a token bucket with fractions, for each key separately.
private struct Model {
    let burst: Double
    let interval: Double
    private var tokens: [String: (left: Double, at: Int64)] = [:]

    init(burst: Int, interval: Int) {
        self.burst = Double(burst)
        self.interval = Double(interval)
    }

    private func left(_ name: String, at now: Int64) -> Double {
        guard let (left, at) = tokens[name] else { return burst }
        return min(burst, left + Double(now - at) / interval)
    }

    /// Milliseconds to wait; nil if the debit is allowed.
    mutating func debit(_ name: String, at now: Int64) -> Int64? {
        let left = left(name, at: now)
        guard left >= 1 - 1e-9 else { return Int64(((1 - left) * interval).rounded()) }
        tokens[name] = (left - 1, now)
        return nil
    }

    /// Refunds the part of one token that has not refilled since the debit.
    mutating func refund(_ name: String, debitedAt: Int64, at now: Int64) {
        let owed = max(0, 1 - Double(now - debitedAt) / interval)
        tokens[name] = (min(burst, left(name, at: now) + owed), now)
    }
}
