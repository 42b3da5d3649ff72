import CountersignAuthority
import CountersignGate
import CountersignSchemes
import CountersignSeal
import CountersignThreads
import CountersignWire
import ScriptedClock
import Testing

@testable import CountersignServer

@Suite struct MeterTests {
    private func release(_ id: String) throws -> AppRelease {
        AppRelease(
            id: try #require(KeyID(id)), app: "demo", platform: "ios", version: id, scheme: .formMD5,
            policy: Policy(),
            key: SigningKey(Secret(random: 32)))
    }

    private func subject(_ release: String, _ outcome: MeterOutcome) -> MeterEntry.Subject {
        let isKnown = !release.isEmpty
        return MeterEntry.Subject(
            app: isKnown ? "demo" : "", release: release, scheme: isKnown ? "form-md5" : "", outcome: outcome)
    }

    @Test func loopsAddUp() throws {
        let meter = RequestMeter()
        let loops = [LoopRequestCounter(meter), LoopRequestCounter(meter)]
        let (first, second) = (try release("r_1"), try release("r_2"))
        for loop in loops {
            for _ in 0..<3 { loop.countAccepted(first, under: .current) }
            loop.countAccepted(first, under: .next)
            loop.count(.refused(.stale), of: .release(second))
            loop.count(.refused(.unsigned), of: .unknown)
        }
        // As after a reload, when the same release is another object.
        loops[0].countAccepted(try release("r_1"), under: .current)
        #expect(
            meter.totals() == [
                subject("r_1", .accepted): 7, subject("r_1", .acceptedUnderNextKey): 2,
                subject("r_2", .refused(.stale)): 2, subject("", .refused(.unsigned)): 2,
            ])
    }

    @Test("each code has a cell of its own, and a name that is read back", arguments: Refusal.Code.allCases)
    func codes(_ code: Refusal.Code) throws {
        let meter = RequestMeter()
        LoopRequestCounter(meter).count(.refused(code), of: .unknown)
        #expect(meter.totals() == [subject("", .refused(code)): 1])
        #expect(MeterOutcome(name: MeterOutcome.refused(code).name) == .refused(code))
    }

    @Test("so has each failure", arguments: DeliveryFailure.allCases)
    func failures(_ failure: DeliveryFailure) throws {
        let meter = RequestMeter()
        LoopRequestCounter(meter).count(.failed(failure), of: .release(try release("r_1")))
        #expect(meter.totals() == [subject("r_1", .failed(failure)): 1])
        #expect(MeterOutcome(name: MeterOutcome.failed(failure).name) == .failed(failure))
        #expect(failure.ordinal == DeliveryFailure.allCases.firstIndex(of: failure))
    }

    @Test func eachOutcomeHasAPlaceAndANameOfItsOwn() {
        for (index, outcome) in MeterOutcome.all.enumerated() {
            #expect(ReleaseCounters.place(of: outcome) == index)
            #expect(MeterOutcome(name: outcome.name) == outcome)
        }
        #expect(Set(MeterOutcome.all.map(\.name)).count == MeterOutcome.all.count)
        #expect(
            [200, 204, 304, 404, 500, 599, 999].map { StatusClass(status: $0).text }
                == ["2xx", "2xx", "3xx", "4xx", "5xx", "5xx", "5xx"])
    }

    @Test func whatTheStoreDoesNotTakeGoesWithTheNextTime() throws {
        let meter = RequestMeter()
        let store = Book()
        let tally = LoopRequestCounter(meter)
        let release = try release("r_1")
        var ledger = MeterPersistence(meter, store: store)
        tally.countAccepted(release, under: .current)
        try ledger.write(at: 86_400, sweepingAt: nil)
        #expect(store.forgotten.isEmpty, "the clock is not trusted")
        try ledger.write(at: 86_401, sweepingAt: 86_401)
        try ledger.write(at: 86_402, sweepingAt: 86_402)
        tally.countAccepted(release, under: .current)
        store.fails = true
        #expect(throws: OperationalError.self) { try ledger.write(at: 86_404, sweepingAt: 86_404) }
        tally.countAccepted(release, under: .current)
        store.fails = false
        try ledger.write(at: 2 * 86_400, sweepingAt: .at(2 * 86_400))
        #expect(
            store.entries == [
                MeterEntry(subject: subject("r_1", .accepted), day: 1, count: 1, lastSeen: 86_400),
                MeterEntry(subject: subject("r_1", .accepted), day: 2, count: 2, lastSeen: 2 * 86_400),
            ])
        #expect(
            store.forgotten.map { $0 + MeterPersistence.keptDays * 86_400 } == [86_401, 2 * 86_400],
            "once a day")
    }

    @Test func durationsAddUpOverLoopsAndKeys() throws {
        let meter = RequestMeter()
        let loops = [LoopRequestCounter(meter), LoopRequestCounter(meter)]
        for loop in loops {
            // Two releases of one app and scheme share their histograms, under each key.
            let current = loop.countAccepted(try release("r_1"), under: .current)
            let next = loop.countAccepted(try release("r_2"), under: .next)
            current.record(nanoseconds: 5, upstreamNanoseconds: 3)
            next.record(nanoseconds: 7, upstreamNanoseconds: nil)
            loop.count(.refused(.stale), of: .release(try release("r_1"))).record(
                nanoseconds: 1, upstreamNanoseconds: nil)
        }
        let found = meter.durations()
        func sum(of outcome: String, over span: DurationSeries.Span) -> UInt64? {
            found[DurationSeries.Subject(app: "demo", scheme: "form-md5", outcome: outcome, span: span)]?.sum
        }
        #expect(found.count == 3)
        #expect(sum(of: "accepted", over: .request) == 24 && sum(of: "accepted", over: .upstream) == 6)
        #expect(sum(of: "stale", over: .request) == 2)
    }

    @Test func requestsInFlight() {
        let meter = RequestMeter()
        let loops = [LoopRequestCounter(meter), LoopRequestCounter(meter)]
        for loop in loops {
            loop.begin()
            loop.begin()
        }
        loops[0].end()
        #expect(meter.requestsInFlight == 3)
    }

    @Test func openMetricsNamesFamiliesAndUnits() {
        var page = PrometheusExposition(.openMetrics)
        page.add("a_seconds_total", kind: .counter, help: "A.", value: 1.5)
        page.describe("b_info", kind: .info, help: "B.")
        page.sample("b_info", labels: [("version", "1")], value: 1)
        page.end()
        #expect(
            page.text == """
                # HELP a_seconds A.
                # TYPE a_seconds counter
                # UNIT a_seconds seconds
                a_seconds_total 1.5
                # HELP b B.
                # TYPE b info
                b_info{version="1"} 1
                # EOF

                """)
    }

    @Test(
        "seconds have the digits that they need",
        arguments: [
            (100_000, "0.0001"), (2_500_000, "0.0025"), (1_000_000_000, "1.0"),
            (60_000_000_001, "60.000000001"), (0, "0.0"),
        ] as [(UInt64, String)])
    func seconds(_ nanoseconds: UInt64, text: String) {
        #expect(PrometheusExposition.seconds(nanoseconds) == text)
    }

    @Test func labelsAreEscaped() {
        var page = PrometheusExposition()
        page.describe("m", kind: .counter, help: "Help.")
        page.sample("m", labels: [("a", "b\"c\\d\ne"), ("é", "ü")], value: 3)
        page.add("n", kind: .gauge, help: "Other.", value: -1)
        #expect(
            page.text == """
                # HELP m Help.
                # TYPE m counter
                m{a="b\\"c\\\\d\\ne",é="ü"} 3
                # HELP n Other.
                # TYPE n gauge
                n -1

                """)
    }
}

/// A store that keeps what it is given, in order. Used by one thread.
private final class Book: MeterStore, @unchecked Sendable {
    var entries: [MeterEntry] = []
    var forgotten: [Int64] = []
    var fails = false

    func add(_ entries: [MeterEntry]) throws(OperationalError) {
        if fails { throw OperationalError(.unreachable, message: "the disk is full") }
        self.entries += entries
    }

    func meter(since day: Int64) throws(OperationalError) -> [MeterEntry] { entries.filter { $0.day >= day } }
    func forgetMeter(before time: TrustedTime) throws(OperationalError) { forgotten.append(time.seconds) }
    func close() {}
}
