import CSQLite
import CountersignGate
import CountersignSQL
import CountersignSeal
import CountersignWire
import Glibc
import Testing

@testable import CountersignAuthority

/// The rows of a deployment have tags and digests from its beginning, which happens once; and an operator can
/// accept rows as they are.
@Suite struct DeploymentRowsTests {
    private let folder = TemporaryFolder()

    private func make() throws {
        let made = try deployment(folder.data)
        _ = try made.addApp(#require(AppName("demo")), settings: [], at: 5)
        made.store.close()
    }

    private func execute(_ sql: String) throws { try AuthorityTests.execute(sql: sql, in: folder) }

    @Test("a new store has tags and digests, and rows without tags are refused")
    func begins() throws {
        let empty = try deployment(folder.data)
        #expect(try empty.verifyRows().findings == [] && empty.store.countRows() == 1)
        empty.store.close()
        try make()
        for _ in 0..<2 {
            let opened = try deployment(folder.data)
            #expect(try opened.verifyRows().findings == [])
            #expect(try opened.verifyAudit().records == 1)
            #expect(try opened.store.apps().count == 1)
            opened.store.close()
        }
        // The tags do not come back by themselves.
        try execute("UPDATE app_setting SET row_tag = NULL")
        let opened = try deployment(folder.data)
        #expect(throws: OperationalError.self) { try opened.store.apps() }
        #expect(try opened.verifyRows().findings.count == 1)
    }

    @Test("a store that was begun is not begun again, by whatever key")
    func beginsOnce() throws {
        let made = try deployment(folder.data)
        let check = try made.store.value(of: .masterKeyCheck)
        let rows = try #require(RowAuthenticator(key: Secret(random: 32)))
        try made.store.begin(with: [(.masterKeyCheck, [1])], authenticatedBy: rows)
        #expect(try made.store.value(of: .masterKeyCheck) == check)
        #expect(try made.verifyRows().findings == [])
    }

    @Test("a store in which another program writes between its making and its first values does not begin")
    func beginsEmpty() throws {
        mkdir(folder.data, 0o700)
        let store = StorePlace.sqlite(path: "\(folder.data)/countersign.db").open()
        defer { store.close() }
        try store.prepare()
        try execute("INSERT INTO audit (number, record, tag) VALUES (1, 'made', x'00')")
        let rows = try #require(RowAuthenticator(key: Secret(random: 32)))
        let fault = #expect(throws: OperationalError.self) {
            try store.begin(with: [(.masterKeyCheck, [1])], authenticatedBy: rows)
        }
        #expect(fault?.message.contains("another program wrote rows") == true, "\(fault?.message ?? "")")
        #expect(try store.value(of: .masterKeyCheck) == nil)
    }

    @Test("a store that was emptied does not begin again while the data folder is there")
    func emptied() throws {
        try make()
        let mark = try DataFolder(folder.data, absence: .fail).storeMark
        for rest in ["", "-wal", "-shm"] { unlink("\(folder.data)/countersign.db\(rest)") }
        let fault = #expect(throws: OperationalError.self) { try deployment(folder.data) }
        #expect(fault?.message.contains("remove \(mark)") == true, "\(fault?.message ?? "")")
        #expect(unlink(mark) == 0)
        #expect(try deployment(folder.data).store.apps().isEmpty)
    }

    @Test("rows without digests are refused")
    func digestsGone() throws {
        try make()
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
