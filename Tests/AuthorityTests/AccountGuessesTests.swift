// Proves that failed logins are counted by account: a login that succeeds is none, an account is reported at
// most once an hour with the number, a flood of names displaces no account with more failures, and a snapshot
// has the counts and no names.
import CountersignWire
import Testing

@testable import CountersignAuthority

@Suite("Failed logins by account") struct AccountGuessesTests {
    private let guesses = AccountGuesses()
    private let app: AppName

    init() throws { app = try #require(AppName("demo")) }

    private func name(_ text: String) throws -> AccountName {
        try AccountName(normalizing: Array(text.utf8).span)
    }

    private func fail(_ text: String, count: Int = 1, at now: Int64) throws {
        for _ in 0..<count { guesses.didBegin(try name(text), of: app, at: now) }
    }

    @Test func aLoginThatSucceedsIsNoFailure() throws {
        try fail("ada", count: 3, at: 10)
        try fail("ada", at: 20)
        guesses.didNotFail(try name("ada"), of: app)
        #expect(
            guesses.count(of: try name("ada"), in: app, at: 30)
                == AccountGuesses.Count(failed: 3, since: 10, last: 20))
        #expect(guesses.count(of: try name("bob"), in: app, at: 30) == nil)
        let other = try #require(AppName("other"))
        #expect(guesses.count(of: try name("ada"), in: other, at: 30) == nil)
        for _ in 0..<4 { guesses.didNotFail(try name("ada"), of: app) }
        #expect(guesses.count(of: try name("ada"), in: app, at: 30) == nil)
        try fail("ada", at: 40)
        #expect(guesses.count(of: try name("ada"), in: app, at: 40 + AccountGuesses.kept + 1) == nil)
    }

    @Test func oneReportAnHourHasAllThatCameMeanwhile() throws {
        try fail("ada", count: 9, at: 1_000_000)
        #expect(guesses.takeReports(at: 1_000_000).isEmpty, "people mistype")
        try fail("ada", count: 3, at: 1_000_001)
        let first = AccountGuesses.Report(app: app, account: try name("ada"), failed: 12)
        #expect(guesses.takeReports(at: 1_000_001) == [first])
        try fail("ada", count: 50, at: 1_000_002)
        #expect(guesses.takeReports(at: 1_003_600).isEmpty)
        #expect(guesses.takeReports(at: 1_003_601).map(\.failed) == [50])
        #expect(guesses.attacked(at: 1_003_602) == 1 && guesses.attacked(at: 1_003_603) == 0)
    }

    @Test func anEventHasAllThatNoEventContains() throws {
        try fail("ada", count: 9, at: 1_000_000)
        #expect(guesses.dueEvents(at: 1_000_000).isEmpty, "people mistype")
        try fail("ada", count: 3, at: 1_000_001)
        guesses.didNotFail(try name("ada"), of: app)
        _ = guesses.takeReports(at: 1_000_001)
        let first = try #require(guesses.dueEvents(at: 1_000_001).first)
        #expect(first == AccountGuesses.Report(app: app, account: try name("ada"), failed: 11))
        // Another process has added an event: the count is kept, and asked about again.
        guesses.didAnnounce(first, isAdded: false, at: 1_000_001)
        try fail("ada", count: 5, at: 1_000_002)
        #expect(guesses.dueEvents(at: 1_000_600).isEmpty)
        let second = try #require(guesses.dueEvents(at: 1_000_601).first)
        #expect(second.failed == 16)
        try fail("ada", count: 10, at: 1_000_601)
        guesses.didAnnounce(second, isAdded: true, at: 1_000_601)
        #expect(guesses.dueEvents(at: 1_004_200).isEmpty)
        #expect(guesses.dueEvents(at: 1_004_201).map(\.failed) == [10])
    }

    @Test func aFloodOfNamesDisplacesNoAttackedAccount() throws {
        try fail("ada", count: 12, at: 1)
        for number in 0..<5_000 { try fail("made-up-\(number)", at: 2) }
        #expect(guesses.count(of: try name("ada"), in: app, at: 3)?.failed == 12)
        #expect(guesses.takeReports(at: 1_000_000).map(\.failed) == [12])
    }

    @Test func aSnapshotHasTheCountsAndNoNames() throws {
        try fail("ada", count: 12, at: 5)
        let snapshot = guesses.snapshot
        #expect(!String(decoding: snapshot, as: UTF8.self).contains("ada"))
        let kept = try #require(AccountGuesses(snapshot: snapshot))
        #expect(kept.count(of: try name("ada"), in: app, at: 6)?.failed == 12)
        #expect(AccountGuesses(snapshot: Array("{}".utf8)) == nil)
        #expect(AccountGuesses(snapshot: Array(snapshot.dropLast())) == nil)
    }
}
