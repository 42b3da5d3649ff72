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
}
