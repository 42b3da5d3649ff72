import CountersignGate
import CountersignSQL
import CountersignSchemes
import CountersignSeal
import CountersignWire
import Foundation
import Testing

@testable import CountersignAuthority

/// A store whose whole content was put back by SQL is not used, also over connections that were open.
@Suite struct EarlierContentTests {
    private let folder = TemporaryFolder()
    private var path: String { "\(folder.data)/countersign.db" }
    private var copy: String { "\(folder.data)/copy.db" }

    private func app(_ name: String, in deployment: Deployment) throws {
        _ = try deployment.addApp(#require(AppName(name)), settings: [], at: 5)
    }

    private func makeCopy() throws { try execute(sql: "VACUUM INTO '\(copy)'", in: folder, changing: false) }

    /// Replaces all rows by those of the copy, except `exceptions` of `row_digest`.
    private func putBack(keeping exceptions: String = "''") throws {
        let tables = AuthenticatedTable.all.map(\.name) + ["audit", "revision"]
        let rows = tables.map { "DELETE FROM \($0); INSERT INTO \($0) SELECT * FROM old.\($0);" }
        try execute(
            sql: """
                ATTACH '\(copy)' AS old; BEGIN IMMEDIATE; DROP TRIGGER IF EXISTS audit_is_not_cut;
                \(rows.joined())
                DELETE FROM row_digest WHERE name NOT IN (\(exceptions));
                INSERT INTO row_digest SELECT * FROM old.row_digest WHERE name NOT IN (\(exceptions));
                COMMIT
                """, in: folder)
    }

    @Test(
        "an open connection finds it, by its next change or a look", arguments: [true, false])
    func openConnection(_ isChange: Bool) throws {
        let running = try deployment(folder.data)
        let lease = NodeLease.lasting()
        running.head.ends(lease)
        try app("first", in: running)
        try makeCopy()
        // By a command, of which the server does not know more than the data folder.
        try app("second", in: deployment(folder.data))
        try putBack()
        #expect(lease.isFresh)
        let fault = #expect(throws: OperationalError.self) {
            if isChange { try app("third", in: running) } else { try running.followStore() }
        }
        #expect(fault?.message.contains("put back to an earlier copy") == true, "\(fault?.message ?? "")")
        // It is not used any more, nor is what is in memory.
        #expect(throws: OperationalError.self) { try running.store.apps() }
        #expect(throws: OperationalError.self) { try lease.requireFresh() }
        #expect(throws: OperationalError.self) { try deployment(folder.data) }
        // No change has made it the deployment's store.
        let names = try deployment(folder.data, accepting: .any).store.apps().map(\.name.description)
        #expect(names == ["first"])
    }

    /// A deployment of two apps, restored in place after a copy was made.
    private func restoredDeployment() throws -> Deployment {
        let opened = try deployment(folder.data)
        for name in ["first", "second"] { try app(name, in: opened) }
        try makeCopy()
        opened.store.close()
        try restoreInPlace()
        return try deployment(folder.data)
    }

    private func restoreInPlace() throws {
        let opened = try deployment(folder.data, accepting: .any)
        defer { opened.store.close() }
        let time = try opened.nextRestoration(at: 1_000)
        let restoration = StoreRestoration(at: .sqlite(path: path), authenticatingBy: opened.rows)
        _ = try restoration.run(at: 1_000, inPlace: AcceptedRestoration(at: time)) { _ in
            opened.auditDraft(for: .backupRestore, on: .deployment, details: [])
        }
    }

    @Test("a restoration in place stays, and cannot be carried to a store of before it")
    func restoration() throws {
        let restored = try restoredDeployment()
        #expect(try restored.keyedRequestsStart(keptFor: 7) == 1_007)
        try app("third", in: restored)
        #expect(try restored.keyedRequestsStart(keptFor: 7) == 1_007)
        #expect(try restored.verifyRows().findings == [])
        restored.store.close()
        try putBack()
        let fault = #expect(throws: OperationalError.self) { try deployment(folder.data) }
        #expect(fault?.message.contains("before the last `countersign restore --in-place`") == true)
    }

    @Test("with the summary of the restoration, no table of the store of before it fits")
    func carriedSummary() throws {
        let restored = try restoredDeployment()
        try app("third", in: restored)
        restored.store.close()
        try putBack(keeping: "'all'")
        let found = try deployment(folder.data, accepting: .any).verifyRows().findings
        #expect(found.contains(.putBack(table: "app")), "\(found.map(\.text))")
        #expect(throws: OperationalError.self) { try deployment(folder.data) }
    }

    @Test("an operator who accepts another end of the audit log goes on with it")
    func acceptedLog() throws {
        let opened = try deployment(folder.data)
        for name in ["first", "second"] { try app(name, in: opened) }
        opened.store.close()
        try execute(
            sql: "DROP TRIGGER audit_is_not_altered; UPDATE audit SET tag = zeroblob(32) WHERE number = 2",
            in: folder)
        #expect(throws: OperationalError.self) { try deployment(folder.data) }
        let examined = try deployment(folder.data, accepting: .any)
        let found = try examined.verifyRows()
        #expect(found.findings.contains(.otherLog(recorded: 2, last: 2)), "\(found.findings.map(\.text))")
        _ = try examined.acceptRows(findings: #require(found.id))
        examined.store.close()
        try app("third", in: deployment(folder.data))
    }
}
