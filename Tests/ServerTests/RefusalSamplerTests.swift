import CountersignHTTP
import CountersignWire
import Testing

@testable import CountersignServer

/// Proves that a flood of refusals writes a bounded number of lines, hides no refusal of another address, and
/// is counted exactly.
@Suite struct RefusalSamplerTests {
    private typealias Subject = RefusalSampler.Subject

    private func subject(_ code: Refusal.Code, of last: UInt8, inNetwork third: UInt8 = 0) -> Subject {
        Subject(cause: .refused(code), address: address([192, 0, third, last]))
    }

    private func address(_ bytes: [UInt8]) -> NetworkAddress { NetworkAddress(bytes: bytes.span) ?? .unknown }

    private func settings(burst: Int = 3, lines: Int = 1000, subjects: Int = 100) -> RefusalSampler.Settings {
        RefusalSampler.Settings(burst: burst, window: 10, mostLines: lines, mostSubjects: subjects)
    }

    @Test func theFirstFewOfEachCauseAndAddressAreWritten() {
        var sampler = RefusalSampler(settings())
        let (flood, other) = (subject(.unsigned, of: 1), subject(.unsigned, of: 2))
        let written = (0..<20_000).count { _ in sampler.admit(flood, now: 100) }
        #expect(written == 3)
        let others = [sampler.admit(other, now: 101), sampler.admit(subject(.malformed, of: 1), now: 101)]
        #expect(others == [true, true])
        let summary = sampler.close()
        #expect(summary == RefusalSampler.Summary(subjects: [flood: 19_997]))
    }

    @Test func verifiedCallersHaveEachLineUpToABound() {
        var settings = settings()
        settings.verifiedLines = 50
        var sampler = VerifiedSampler(settings)
        let (flood, other) = (subject(.stale, of: 1), subject(.stale, of: 2))
        func written(_ count: Int, of subject: Subject, at now: Int64) -> Int {
            (0..<count).count { _ in sampler.admit(subject, of: .release, now: now) }
        }
        #expect(written(20_000, of: flood, at: 100) == 52, "with two in any case")
        #expect(written(10, of: other, at: 100) == 2, "nothing is left")
        #expect(sampler.isOver(now: 110))
        #expect(sampler.close().subjects == [flood: 19_948, other: 8])
        #expect(written(20_000, of: flood, at: 110) < 42, "another caller asks for lines")
        #expect(written(8, of: other, at: 110) == 8, "it has its share")
        _ = sampler.close()
        #expect(written(20_000, of: flood, at: 1_000) == 52)
        settings.verifiedLines = 0
        sampler = VerifiedSampler(settings)
        #expect(written(20_000, of: flood, at: 100) == 20_000)
    }

    @Test func callersHaveSoManyTracesSampledASecond() {
        let budget = TraceBudget()
        let second: UInt64 = 1_000_000_000
        func taken(of count: Int, perSecond rate: Int, at seconds: UInt64) -> Int {
            (0..<count).count { _ in budget.take(perSecond: rate, for: .account(1), at: seconds * second) }
        }
        #expect(taken(of: 1_000, perSecond: 0, at: 100) == 0)
        #expect(taken(of: 1_000, perSecond: 20, at: 100) == 200)
        #expect(taken(of: 1_000, perSecond: 20, at: 101) == 20)
        #expect(taken(of: 1_000, perSecond: 20, at: 1_000) == 200)
        // One caller leaves traces to another one.
        #expect(!budget.take(perSecond: 20, for: .account(2), at: 1_000 * second))
        #expect(taken(of: 1_000, perSecond: 20, at: 1_005) == 0)
        #expect(budget.take(perSecond: 20, for: .account(2), at: 1_005 * second))
    }

    @Test func aWindowEndsAfterItsSecondsAndTheNextBeginsAnew() {
        var sampler = RefusalSampler(settings())
        let flood = subject(.unsigned, of: 1)
        for _ in 0..<5 { _ = sampler.admit(flood, now: 100) }
        #expect(!sampler.isOver(now: 109))
        #expect(sampler.isOver(now: 110))
        let first = sampler.close()
        #expect(first.subjects == [flood: 2])
        let isWritten = sampler.admit(flood, now: 110)
        #expect(isWritten)
        #expect(!sampler.isOver(now: 119))
        let second = sampler.close()
        #expect(second.isEmpty)
        #expect(!sampler.isOver(now: 1_000))
    }

    @Test func aFullTableCountsByCause() {
        var sampler = RefusalSampler(settings(subjects: 10))
        var written = 0
        for round in 0..<4 {
            for address in 0..<UInt8(100)
            where sampler.admit(subject(.unsigned, of: address), now: Int64(round)) {
                written += 1
            }
        }
        let summary = sampler.close()
        // Those of the table, and the first three of all others.
        #expect(written == 33)
        #expect(summary.subjects.count == 10)
        #expect(summary.subjects.values.allSatisfy { $0 == 1 })
        #expect(summary.others == [.refused(.unsigned): 357])
        #expect((80...100).contains(summary.otherAddresses))
    }

    @Test func oneNetworkFillsASmallPartOfTheTable() {
        var sampler = RefusalSampler(settings(subjects: 100))
        for number in 0..<UInt8(200) {
            let flood = address([0x20, 1, 0x0D, 0xB8, 0, 0, 0, number] + [UInt8](repeating: 0, count: 8))
                .subscriber
            _ = sampler.admit(Subject(cause: .refused(.unsigned), address: flood), now: 1)
        }
        let isWritten = sampler.admit(subject(.unsigned, of: 1), now: 1)
        #expect(isWritten)
        let summary = sampler.close()
        #expect(summary.others == [.refused(.unsigned): 200 - 64])
    }

    @Test func theLinesOfOneWindowAreBoundedWhoeverSends() {
        var sampler = RefusalSampler(settings(burst: 10, lines: 50, subjects: 1000))
        var (written, sent) = (0, 0)
        for address in 0..<UInt8(90) {
            // Each pair has ten lines if there is room.
            for code in [Refusal.Code.unsigned, .badSignature] {
                for _ in 0..<10 {
                    sent += 1
                    if sampler.admit(subject(code, of: address), now: 7) { written += 1 }
                }
            }
        }
        let summary = sampler.close()
        // 50 in turn, and then the first two of each pair.
        #expect(written == 50 + (180 - 5) * 2)
        #expect(written + summary.subjects.values.reduce(0, +) + summary.others.values.reduce(0, +) == sent)
    }

    @Test(arguments: [(bytes: 300, written: 50), (1_023, 50), (1_024, 25), (4_096, 10)])
    func aLongLineCountsAsSeveral(bytes: Int, written: Int) {
        var sampler = RefusalSampler(settings(burst: 100, lines: 50, subjects: 1000))
        let flood = subject(.malformed, of: 1)
        let found = (0..<1_000).count { _ in
            guard sampler.admit(flood, now: 7) else { return false }
            sampler.charge(bytes: bytes)
            return true
        }
        #expect(found == written)
        var settings = settings()
        settings.verifiedLines = 50
        var verified = VerifiedSampler(settings)
        let foundOfVerified = (0..<1_000).count { _ in
            guard verified.admit(flood, of: .release, now: 7) else { return false }
            verified.charge(bytes: bytes)
            return true
        }
        #expect((written...written + 3).contains(foundOfVerified), "\(foundOfVerified)")
    }

    @Test func withoutABurstEverythingIsWritten() {
        var sampler = RefusalSampler(settings(burst: 0))
        let written = (0..<500).count { _ in sampler.admit(subject(.unsigned, of: 1), now: 1) }
        let summary = sampler.close()
        #expect(written == 500)
        #expect(summary.isEmpty)
    }
}
