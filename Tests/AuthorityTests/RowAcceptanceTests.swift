import CountersignGate
import CountersignSQL
import CountersignSeal
import CountersignWire
import Glibc
import Testing

@testable import CountersignAuthority

/// What an operator accepts is what `audit verify` has shown, and no server runs meanwhile; what was logged
/// once is logged again when it happens again.
@Suite struct RowAcceptanceTests {
    private let folder = TemporaryFolder()

    private func execute(_ sql: String) throws { try AuthorityTests.execute(sql: sql, in: folder) }

    private func makeApp() throws -> Deployment {
        let made = try deployment(folder.data)
        _ = try made.addApp(#require(AppName("demo")), settings: [], at: 5)
        return made
    }

    @Test("another content of the same finding is not accepted")
    func otherContent() throws {
        let made = try makeApp()
        #expect(try made.verifyRows().id == nil)
        try execute("UPDATE app SET created = 6")
        let seen = try #require(try made.verifyRows().id)
        #expect(try made.verifyRows().id == seen)
        try execute("UPDATE app SET created = 7")
        #expect(try made.verifyRows().findings.count == 1)
        for id in [seen, "", "any"] {
            #expect(throws: OperationalError.self) { try made.acceptRows(findings: id) }
        }
        let now = try #require(try made.verifyRows().id)
        #expect(now != seen)
        #expect(try made.acceptRows(findings: now).findings == [.altered(table: "app", row: "demo")])
        #expect(try made.verifyRows() == made.verifyRows() && made.verifyRows().id == nil)
        let record = try #require(try made.auditRecords(last: 1).first?.document?.root)
        #expect(record["details"]?["accepted"]?.elements?.compactMap(\.string) == ["app demo"])
        #expect(throws: OperationalError.self) { try made.acceptRows(findings: now) }
    }

    @Test("nothing is accepted under a running server, or where that cannot be found out")
    func served() throws {
        let made = try makeApp()
        try execute("UPDATE app SET created = 6")
        let id = try #require(try made.verifyRows().id)
        let path = made.folder.replay + ".lock"
        let lock = open(path, O_RDWR | O_CREAT, 0o600)
        #expect(lock >= 0 && flock(lock, LOCK_EX | LOCK_NB) == 0)
        let fault = #expect(throws: OperationalError.self) { try made.acceptRows(findings: id) }
        #expect(fault?.message.contains("a server runs") == true)
        close(lock)
        #expect(unlink(path) == 0 && symlink("elsewhere", path) == 0)
        let other = #expect(throws: OperationalError.self) { try made.acceptRows(findings: id) }
        #expect(other?.message.contains("cannot find out") == true)
        #expect(unlink(path) == 0)
        _ = try made.acceptRows(findings: id)
    }

    @Test("no server can start while a body runs that needs none")
    func lockIsHeld() throws {
        let data = try DataFolder(folder.data, absence: .create)
        try data.withoutServer(refusal: "served") { () throws(OperationalError) in
            #expect(throws: OperationalError.self) {
                try ReplayFile(path: data.replay, expecting: nil, now: 1_800_000_000)
            }
        }
        _ = try ReplayFile(path: data.replay, expecting: nil, now: 1_800_000_000)
    }

    @Test("a row is reported again after a check that found nothing, and too many in one line")
    func news() throws {
        let rows = try #require(RowAuthenticator(key: Secret(random: 32)))
        var found = RowVerification()
        found.findings = [.altered(table: "account", row: "1")]
        rows.note(found)
        rows.note(found)
        #expect(rows.takeNews().count == 1)
        rows.note(RowVerification())
        rows.note(found)
        rows.refused("1", of: .account)
        #expect(rows.takeNews() == ["account 1: the row was altered"])
        for row in 2...1_200 { rows.refused(String(row), of: .account) }
        let news = rows.takeNews()
        #expect(news.count == 1_000 && news.last?.hasPrefix("more than 1000 findings") == true)
        rows.note(RowVerification())
        rows.refused("1200", of: .account)
        #expect(rows.takeNews() == ["account 1200: the row was altered"])
    }
}
