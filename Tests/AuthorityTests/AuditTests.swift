import CSQLite
import CountersignGate
import CountersignSQL
import CountersignSchemes
import CountersignSeal
import CountersignWire
import Foundation
import Testing

@testable import CountersignAuthority

/// Changes to the audit log by an attacker that can write the database but has no master key are detected.
@Suite struct AuditTests {
    private let folder = TemporaryFolder()
    private var path: String { "\(folder.data)/countersign.db" }

    /// A deployment whose log has nine records.
    private func filled() throws {
        let deployment = try deployment(folder.data)
        let demo = try #require(AppName("demo"))
        _ = try deployment.addApp(demo, settings: ["slots=single"], at: 5)
        for number in 1...4 {
            _ = try deployment.addRelease(draft(demo, id: "r_\(number)", version: "1.\(number)"), at: 6)
        }
        try deployment.setPolicy(["window=9s", "legacy-key=a planted secret"], of: demo)
        let id = try #require(KeyID("r_1"))
        try deployment.setPolicy(["debug=on", "window="], ofRelease: id)
        try deployment.retire(id, with: AppRelease.Retirement(at: 77, updateURL: "https://example.com/new"))
        try deployment.rotateAssertionKeys(at: 80)
        #expect(try deployment.verifyAudit().findings == [])
        #expect(try deployment.verifyAudit().records == 9)
    }

    /// Runs SQL on the file itself, bypassing the store.
    private func tamper(_ sql: String) throws {
        var handle: OpaquePointer?
        defer { sqlite3_close_v2(handle) }
        #expect(sqlite3_open_v2(path, &handle, SQLITE_OPEN_READWRITE, nil) == SQLITE_OK)
        let free = "DROP TRIGGER IF EXISTS audit_is_not_altered; DROP TRIGGER IF EXISTS audit_is_not_cut;"
        #expect(
            sqlite3_exec(handle, free + sql, nil, nil, nil) == SQLITE_OK,
            "\(String(cString: sqlite3_errmsg(handle)))")
        #expect(sqlite3_changes(handle) > 0, "nothing was tampered with: \(sql)")
    }

    /// As `audit verify` opens the store: what was tampered with may be the record that was followed.
    private func findings(noted: AuditHead? = nil) throws -> [AuditFinding] {
        try examined().verifyAudit(noted: noted).findings
    }

    private func examined() throws -> Deployment { try deployment(folder.data, accepting: .any) }

    private static let swap = """
        CREATE TEMP TABLE swapped AS SELECT 9 - number AS number, record, tag FROM audit WHERE number IN (4,\
         5);
        UPDATE audit SET (record, tag) = (SELECT record, tag FROM temp.swapped WHERE number = audit.number)
            WHERE number IN (4, 5);
        """

    @Test(
        "each kind of tampering is found, exactly",
        arguments: [
            ("UPDATE audit SET record = replace(record, 'window', 'wondow') WHERE number = 6", [.altered(6)]),
            ("UPDATE audit SET record = CAST(record || x'FF' AS TEXT) WHERE number = 6", [.altered(6)]),
            ("UPDATE audit SET record = '{\"number\":6}' WHERE number = 6", [.altered(6)]),
            ("UPDATE audit SET record = 'no record' WHERE number = 6", [.altered(6)]),
            ("UPDATE audit SET record = replace(record, 'r_1', 'r_9') WHERE number = 2", [.altered(2)]),
            ("UPDATE audit SET tag = zeroblob(32) WHERE number = 6", [.altered(6)]),
            ("UPDATE audit SET tag = x'' WHERE number = 9", [.altered(9)]),
            (
                "UPDATE audit SET record = replace(record, 80, 81), tag = zeroblob(32) WHERE number = 9",
                [.altered(9)]
            ),
            ("UPDATE audit SET record = record || ' '", (1...9).map { .altered($0) }),
            ("DELETE FROM audit WHERE number = 6", [.missing(6...6)]),
            ("DELETE FROM audit WHERE number IN (3, 6, 7)", [.missing(3...3), .missing(6...7)]),
            ("DELETE FROM audit WHERE number < 3", [.missing(1...2)]),
            ("DELETE FROM audit WHERE number > 7", [.missing(8...9)]),
            ("DELETE FROM audit", [.missing(1...9)]),
            (swap, [.moved(from: 5, to: 4), .moved(from: 4, to: 5)]),
            (
                "DELETE FROM audit WHERE number = 6; UPDATE audit SET number = number - 1 WHERE number > 6",
                [.moved(from: 7, to: 6), .moved(from: 8, to: 7), .moved(from: 9, to: 8), .missing(9...9)]
            ),
            (
                """
                INSERT INTO audit SELECT 10, replace(record, '\"number\":9', '\"number\":10'), tag FROM \
                audit WHERE number = 9
                """,
                [.altered(10), .beyondHead(10...10)]
            ),
            (
                "INSERT INTO audit SELECT 9223372036854775807, record, tag FROM audit WHERE number = 9",
                [
                    .missing(10...(.max - 1)), .moved(from: 9, to: .max), .beyondHead(10 ... .max),
                ]
            ),
            ("INSERT INTO audit VALUES (-4, '{}', x'')", [.altered(-4)]),
            ("DELETE FROM meta WHERE name = 'audit-head'", [.headMissing]),
            ("UPDATE meta SET value = zeroblob(72) WHERE name = 'audit-head'", [.headAltered]),
            ("UPDATE meta SET value = x'00' WHERE name = 'audit-head'", [.headAltered]),
            ("DELETE FROM meta WHERE name = 'audit-head'; DELETE FROM audit", [.headMissing]),
        ] as [(String, [AuditFinding])])
    func tampering(_ row: (sql: String, found: [AuditFinding])) throws {
        try filled()
        try tamper(row.sql)
        #expect(try findings() == row.found)
    }

    @Test func anEndThatWasCutIsNotMadeToLookWhole() throws {
        try filled()
        let before = try deployment(folder.data).auditRecords(last: 9)
        try tamper("DELETE FROM audit WHERE number > 7")
        #expect(throws: OperationalError.self) { try deployment(folder.data) }
        try examined().setPolicy(["window=8s"], of: #require(AppName("demo")))
        #expect(try findings() == [.missing(8...9)], "the next record is the tenth, not the eighth")
        #expect(before.count == 9)
    }

    @Test("behind a head that was altered nothing is changed", arguments: ["zeroblob(72)", "x''"])
    func alteredHead(_ value: String) throws {
        try filled()
        try tamper("UPDATE meta SET value = \(value) WHERE name = 'audit-head'")
        let deployment = try deployment(folder.data)
        let demo = try #require(AppName("demo"))
        let fault = #expect(throws: OperationalError.self) {
            try deployment.setPolicy(["window=8s"], of: demo)
        }
        #expect(fault?.message.contains("audit verify") == true)
        #expect(try deployment.app(demo).settings["window"] == .text("9s"))
    }

    @Test func aLogPutBackToAnEarlierStateIsFoundByANotedHead() throws {
        let fresh = try deployment(folder.data).verifyAudit()
        #expect(fresh == AuditVerification(records: 0, head: .empty))
        _ = try deployment(folder.data).addApp(#require(AppName("first")), settings: [], at: 5)
        let earlier = try #require(FileManager.default.contents(atPath: path))
        try filledOnly("demo")
        let noted = try #require(try deployment(folder.data).verifyAudit().head)
        #expect(AuditHead(noted.text) == noted && noted.number == 2)
        #expect(try findings(noted: noted) == [])
        #expect(FileManager.default.createFile(atPath: path, contents: earlier))
        // With the head that the data folder keeps, the store would not be opened (`FollowedHead`).
        try FileManager.default.removeItem(atPath: "\(folder.data)/followed-head")
        #expect(try findings() == [], "alone, it cannot tell")
        #expect(try findings(noted: noted) == [.notedHeadMissing(noted)])
        // Nor does another second record pass for the one that was there.
        try filledOnly("other")
        #expect(try findings(noted: noted) == [.notedHeadMissing(noted)])
        #expect(try findings(noted: .empty) == [])
    }

    private func filledOnly(_ app: String) throws {
        _ = try deployment(folder.data).addApp(#require(AppName(app)), settings: [], at: 5)
    }

    @Test func whatARecordSays() throws {
        try filled()
        let records = try deployment(folder.data).auditRecords(last: 4).map {
            String(decoding: $0.record, as: UTF8.self)
        }
        guard case .user(let id, let name) = AuditActor.thisProcess else { return }
        let actor = #""actor":{"kind":"os-user","uid":\#(id),"name":\#(JSONValue.optional(name).text)}"#
        #expect(id == getuid())
        let expected = [
            (6, #""app.policy","app":"demo","details":{"window":"9s","legacy-key":"(sealed)"}}"#),
            (7, #""release.policy","app":"demo","release":"r_1","details":{"debug":"on","window":null}}"#),
            (
                8,
                #"""
                "release.retire","app":"demo","release":"r_1","details":{"at":77,\#
                "update_url":"https://example.com/new"}}
                """#
            ),
            (9, #""assertion-keys.rotate","details":{}}"#),
        ]
        #expect(records.count == expected.count)
        for (record, (number, rest)) in zip(records, expected) {
            #expect(record.hasPrefix(#"{"number":\#(number),"time":"#), "\(record)")
            #expect(record.hasSuffix(#",\#(actor),"action":\#(rest)"#), "\(record)")
        }
        let file = try #require(FileManager.default.contents(atPath: path))
        #expect(file.range(of: Data("a planted secret".utf8)) == nil)
        #expect(file.range(of: Data("secret of r_1".utf8)) == nil && file.range(of: Data("r_1".utf8)) != nil)
    }

    @Test func aChangeThatDidNotComeAboutIsNotRecorded() throws {
        try filled()
        let deployment = try deployment(folder.data)
        let demo = try #require(AppName("demo"))
        #expect(throws: OperationalError.self) { try deployment.addApp(demo, settings: [], at: 5) }
        #expect(throws: OperationalError.self) {
            try deployment.setPolicy(["window=9s"], of: #require(AppName("absent")))
        }
        #expect(throws: OperationalError.self) { try deployment.promoteNextKey(of: #require(KeyID("r_1"))) }
        #expect(try deployment.verifyAudit().records == 9)
    }

    @Test func fourWritersMakeOneChain() async throws {
        _ = try deployment(folder.data)
        let data = folder.data
        try await withThrowingTaskGroup(of: Void.self) { group in
            for writer in 0..<4 {
                group.addTask {
                    let deployment = try deployment(data)
                    for number in 0..<10 {
                        guard let name = AppName("app-\(writer)-\(number)") else { return }
                        _ = try deployment.addApp(name, settings: [], at: 1)
                    }
                }
            }
            try await group.waitForAll()
        }
        let verification = try deployment(data).verifyAudit()
        #expect(verification.findings == [] && verification.records == 40 && verification.head?.number == 40)
    }

    @Test func aDeploymentWithoutTheLogsKeyDoesNotOpen() throws {
        try filled()
        let key = try #require(
            try MasterKeySource(environment: [:], folder: DataFolder(folder.data, absence: .fail)).find()
                .current)
        let store = StorePlace.sqlite(path: path).open()
        let old = key.seal(
            Secret(copying: Array("countersign".utf8).span),
            as: SealBinding(kind: "master-key-check", row: "check"))
        try store.set(.masterKeyCheck, to: old)
        store.close()
        try tamper(
            "DELETE FROM meta WHERE name = 'audit-head'; DELETE FROM audit; DELETE FROM row_digest")
        try FileManager.default.removeItem(atPath: "\(folder.data)/store-begun")
        #expect(throws: OperationalError.self) { try deployment(folder.data) }
    }
}
