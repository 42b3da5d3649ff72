import CSQLite
import CountersignGate
import CountersignSQL
import CountersignSeal
import CountersignWire
import Glibc
import Testing

@testable import CountersignAuthority

/// A deployment from before rows had tags gets them once; the mark of it cannot be taken back, and an
/// operator can accept rows as they are.
@Suite struct DeploymentRowsTests {
    private let folder = TemporaryFolder()

    /// A deployment as the version before left it, apart from empty columns.
    private func makeEarlier() throws {
        let made = try deployment(folder.data)
        _ = try made.addApp(#require(AppName("demo")), settings: [], at: 5)
        let check = try #require(try made.store.value(of: .masterKeyCheck))
        let opened = try #require(MasterKeyCheck(check, under: made.masterKey.keys.current))
        #expect(opened.hasTaggedRows)
        try made.store.set(
            .masterKeyCheck,
            to: MasterKeyCheck.sealed(under: made.masterKey.keys.current, auditKey: opened.auditKey))
        made.store.close()
        #expect(unlink(made.folder.rowsMark) == 0)
        try execute(
            "DELETE FROM row_digest; UPDATE app SET row_tag = NULL; UPDATE app_setting SET row_tag = NULL")
    }

    private func execute(_ sql: String) throws { try AuthorityTests.execute(sql: sql, in: folder) }

    @Test("rows of an earlier version are tagged once, and it is recorded")
    func upgrade() throws {
        try makeEarlier()
        for _ in 0..<2 {
            let opened = try deployment(folder.data)
            #expect(try opened.verifyRows().findings == [])
            #expect(try opened.verifyAudit().records == 2)
            #expect(try opened.store.apps().count == 1)
            opened.store.close()
        }
        // From now on, rows without tags are refused, and the tags do not come back by themselves.
        try execute("UPDATE app_setting SET row_tag = NULL")
        let opened = try deployment(folder.data)
        #expect(throws: OperationalError.self) { try opened.store.apps() }
        #expect(try opened.verifyRows().findings.count == 1)
    }

    @Test("an earlier server must have ended")
    func servedMeanwhile() throws {
        try makeEarlier()
        let lock = open("\(folder.data)/replay.lock", O_RDWR | O_CREAT, 0o600)
        #expect(lock >= 0 && flock(lock, LOCK_EX | LOCK_NB) == 0)
        let fault = #expect(throws: OperationalError.self) { try deployment(folder.data) }
        #expect(fault?.message.contains("stop the server") == true)
        close(lock)
        #expect(try deployment(folder.data).verifyRows().findings == [])
    }

    @Test("a mark that was taken back does not make altered rows right")
    func markTakenBack() throws {
        try makeEarlier()
        try AuthorityTests.execute(
            sql: "CREATE TABLE kept AS SELECT value FROM meta WHERE name = 'master-key-check'", in: folder,
            changing: false)
        try deployment(folder.data).store.close()
        try execute(
            """
            UPDATE meta SET value = (SELECT value FROM kept) WHERE name = 'master-key-check';
            DROP TABLE kept; DELETE FROM row_digest; UPDATE app_setting SET text = '/ open';
            """)
        #expect(throws: OperationalError.self) { try deployment(folder.data) }
    }

    @Test("rows without digests are refused")
    func digestsGone() throws {
        try makeEarlier()
        try deployment(folder.data).store.close()
        try execute("DELETE FROM row_digest")
        let opened = try deployment(folder.data)
        #expect(throws: OperationalError.self) { try opened.store.apps() }
        #expect(try opened.verifyRows().findings.count == AuthenticatedTable.all.count)
        let id = try #require(try opened.verifyRows().id)
        #expect(try opened.acceptRows(findings: id).deleted == 0)
        #expect(try opened.verifyRows().findings == [])
        #expect(try opened.store.apps().count == 1)
    }
}
