// Proves which requests of the meter belong to the condition of an app, and from which share of failures on
// its backend counts as failing.
import CountersignGate
import CountersignSchemes
import CountersignWire
import Testing

@testable import CountersignAuthority

@Suite("Conditions of apps") struct AppConditionTests {
    private static let today: Int64 = 20_000
    private let app: App

    init() throws {
        app = App(
            name: try #require(AppName("demo")), created: 0, settings: ["routes": .text("/ session")])
    }

    private func entry(
        _ outcome: MeterOutcome, count: Int64, day: Int64 = today, app: String = "demo",
        release: String = "r_1"
    ) -> MeterEntry {
        MeterEntry(
            subject: MeterEntry.Subject(app: app, release: release, scheme: "token", outcome: outcome),
            day: day, count: count, lastSeen: day * 86_400)
    }

    private func condition(_ meter: [MeterEntry]) throws -> AppCondition {
        try AppCondition(app, meter: meter, at: AppConditionTests.today * 86_400 + 100)
    }

    @Test func oneFailureInTwentyIsFailing() throws {
        let failures: [DeliveryFailure: Int64] = [
            .upstreamError: 1, .upstreamUnreachable: 2, .clientAborted: 0,
        ]
        for (failure, failed) in failures {
            // A failure before the response's head is not among the responses.
            let answered: Int64 = failure == .upstreamUnreachable ? 38 : 20
            for (extra, isFailing) in [(Int64(0), failed > 0), (1, false)] {
                let found = try condition([
                    entry(.answered(.success), count: answered + extra), entry(.accepted, count: answered),
                    entry(.failed(failure), count: max(failed, 1)),
                ])
                #expect(found.failed == failed && found.isFailing == isFailing, "\(failure) \(extra)")
            }
        }
        #expect(try !condition([]).isFailing)
    }

    @Test func todayAndYesterdayCount() throws {
        let others = HostedApp.otherVersionsID(of: "demo").description
        for (day, counts) in [(Int64(0), true), (1, true), (2, false)] {
            let found = try condition([
                entry(.failed(.upstreamClosed), count: 3, day: AppConditionTests.today - day),
                entry(.accepted, count: 4, day: AppConditionTests.today - day, release: others),
                entry(.answered(.success), count: 4, day: AppConditionTests.today - day, release: others),
            ])
            #expect(found.failed == (counts ? 3 : 0) && found.unregistered == (counts ? 4 : 0), "\(day)")
            #expect(found.forwarded == (counts ? 7 : 0), "\(day)")
        }
        #expect(try condition([entry(.failed(.upstreamClosed), count: 3, app: "other")]).failed == 0)
    }
}
