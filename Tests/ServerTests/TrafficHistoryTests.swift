import CountersignAuthority
import CountersignThreads
import CountersignWire
import Testing

@testable import CountersignServer

/// The console's figures: each minute has the requests that were counted in it, an hour or a day later too,
/// and whatever the clock does; the latest refusals keep a place for each code.
@Suite struct TrafficHistoryTests {
    private let meter = RequestMeter()
    private let counter: LoopRequestCounter
    private let history: TrafficHistory

    init() {
        counter = LoopRequestCounter(meter)
        history = TrafficHistory(meter)
    }

    @Test func aMinuteHasItsOwnRequests() {
        history.look(at: 600)
        counter.count(.refused(.unsigned), of: .unknown)
        counter.count(.refused(.unsigned), of: .unknown)
        let counted = counter.count(.refused(.badSignature), of: .unknown)
        counted.record(nanoseconds: 3_000_000, upstreamNanoseconds: nil)
        history.look(at: 659)
        #expect(history.last(60).isEmpty, "the minute is not over")
        history.look(at: 660)
        counter.count(.refused(.unsigned), of: .unknown)
        history.look(at: 720)
        let minutes = history.last(60)
        #expect(minutes.map(\.number) == [10, 11])
        #expect(minutes[0].refused == 3 && minutes[0].refusals == [.unsigned: 2, .badSignature: 1])
        #expect(minutes[0].durations.count == 1 && minutes[1].durations.count == 0)
        #expect(minutes[1].refused == 1 && minutes[1].requests == 1)
        #expect(history.minute(10)?.refused == 3 && history.minute(9) == nil)
    }

    @Test func whatWasCountedBeforeTheFirstLookIsOfNoMinute() {
        counter.count(.refused(.unsigned), of: .unknown)
        history.look(at: 0)
        history.look(at: 60)
        #expect(history.last(1).first?.refused == 0)
    }

    @Test func aDayAndAnHourAreKept() {
        for minute in 0...Int64(TrafficHistory.mostMinutes + 10) { history.look(at: minute * 60) }
        #expect(history.last(.max).count == TrafficHistory.mostMinutes)
        #expect(history.minute(9) == nil && history.minute(10) != nil)
    }

    @Test func aClockThatGoesBackLeavesNoMinuteOfALaterTime() {
        for minute in [100, 101, 102, 50, 51] { history.look(at: Int64(minute) * 60) }
        #expect(history.last(.max).map(\.number) == [50])
    }

    @Test func refusalsOfOneCodeDoNotPushOutAnother() {
        let refusals = RecentRefusals()
        refusals.add(refusal("rare", code: "unknown-key"))
        for number in 0..<1_000 { refusals.add(refusal("\(number)", code: "unsigned")) }
        #expect(Set(refusals.report(atMost: 1).causes.keys) == ["unknown-key", "unsigned"])
        #expect(refusals.refusal(of: "rare") != nil && refusals.refusal(of: "999") != nil)
        #expect(refusals.refusal(of: "0") == nil)
        let kept = refusals.report(of: RefusalFilter(code: "unsigned"), atMost: 100).refusals
        #expect(kept.map(\.event).prefix(2) == ["999", "998"])
        #expect(kept.count == RecentRefusals.mostOfCode)
        refusals.add(refusal("long", code: "stale", length: RecentRefusals.longestLine + 1))
        #expect(refusals.refusal(of: "long") == nil)
    }

    private func refusal(_ event: String, code: String, length: Int = 10) -> RecentRefusal {
        RecentRefusal(
            event: event, code: code, line: [UInt8](repeating: 0x20, count: length), named: nil,
            search: .notMade, time: 0)
    }

    @Test func explanationsAreOneASecond() {
        var allowance = ExplanationAllowance()
        let first = (0..<20).count { _ in allowance.take(now: 1_000) }
        #expect(first == 5)
        let next = (0..<20).count { _ in allowance.take(now: 1_001) }
        #expect(next == 1)
        let later = (0..<20).count { _ in allowance.take(now: 9_000) }
        #expect(later == 5)
    }
}
