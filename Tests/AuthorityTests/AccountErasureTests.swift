import CSQLite
import CountersignGate
import CountersignSchemes
import CountersignSeal
import CountersignWire
import Foundation
import Testing

@testable import CountersignAuthority

/// The audit log of a version that recorded names is rewritten once, unless it was altered, and an erased
/// account leaves a tombstone and nothing else.
@Suite struct AccountErasureTests {
    private let folder = TemporaryFolder()

    /// A record as former versions wrote it, at its place in the chain.
    private static func former(_ deployment: Deployment, members: String) -> AuditDraft {
        let chain = deployment.auditChain
        return AuditDraft { (sealed) throws(OperationalError) in
            guard let head = sealed.flatMap({ chain.head($0) }) else {
                throw OperationalError(.failed, message: "no head")
            }
            let record = Array(#"{"number":\#(head.number + 1),"time":7,\#(members)}"#.utf8)
            let tag = chain.tag(of: record, behind: head.tag)
            return (
                AuditRow(number: head.number + 1, record: record, tag: tag),
                chain.sealed(AuditHead(number: head.number + 1, tag: tag))
            )
        }
    }

    /// A deployment with an account, whose log names it and a stranger as former versions did.
    private func formerDeployment() throws -> (Deployment, AccountName, AppName) {
        let deployment = try deployment(folder.data)
        let app = try #require(AppName("demo"))
        _ = try deployment.addApp(app, settings: [], requiring: .signed, at: 5)
        let name = try AccountName(normalizing: "alice \"the\" ü")
        let text = JSONValue.string(name.description).text
        let draft = AccountDraft(
            app: app, name: name, created: 7, tombstone: try deployment.tombstone(of: name, in: app))
        let actor = #""actor":{"kind":"account","app":"demo","name":\#(text)}"#
        let added = Self.former(
            deployment,
            members: #"\#(actor),"action":"account.register","app":"demo","account":\#(text),"details":{}"#)
        guard case .yes = try deployment.store.insert(draft, recording: added) else {
            throw OperationalError(.failed, message: "taken")
        }
        let stranger = Self.former(
            deployment,
            members: #""actor":{"kind":"os-user","uid":0,"name":"root"},"action":"account.lock","#
                + #""app":"demo","account":"stranger","details":{"n":1}"#
        )
        try deployment.store.set(.meterBegan, to: [1], recording: stranger)
        return (deployment, name, app)
    }

    private func text(_ deployment: Deployment) throws -> String {
        try deployment.auditRecords(last: 100).map { String(decoding: $0.record, as: UTF8.self) }
            .joined(separator: "\n")
    }

    @Test func namesInAFormerLogBecomePseudonymsOnce() throws {
        let (deployment, name, app) = try formerDeployment()
        let before = try deployment.verifyAudit()
        let noted = try #require(before.head)
        #expect(before.findings == [] && before.records == 3)
        #expect(try text(deployment).contains("alice"))

        try deployment.rewriteAudit()
        let after = try deployment.verifyAudit(noted: noted)
        #expect(after.findings == [] && after.records == 4, "the head of then is in the rewriting's record")
        #expect(try !text(deployment).contains("alice") && !text(deployment).contains("stranger"))
        let pseudonym = try #require(try deployment.account(name, of: app).pseudonym)
        let records = try deployment.auditRecords(last: 100).compactMap(\.document)
        #expect(records[1].root["pseudonym"]?.string == pseudonym.description)
        #expect(records[1].root["actor"]?["pseudonym"]?.string == pseudonym.description)
        #expect(records[2].root["actor"]?["name"]?.string == "root")
        #expect(records[2].root["pseudonym"]?.string?.hasPrefix("a_") == true)
        #expect(records[3].root["action"]?.string == "audit.rewrite")

        let head = try #require(after.head)
        try deployment.rewriteAudit()
        #expect(try deployment.verifyAudit().head == head, "once")
        let first = try #require(AuditHead("1:\(String(repeating: "00", count: 32))"))
        #expect(
            try deployment.verifyAudit(noted: first).findings == [.notedHeadRewritten(first, at: 4)],
            "another head of then is not taken on trust")
        let later = try #require(AuditHead("4:\(String(repeating: "00", count: 32))"))
        #expect(try deployment.verifyAudit(noted: later).findings == [.notedHeadMissing(later)])
    }

    @Test("the name goes from unused parts of the file in the spelling of JSON, too")
    func spelling() throws {
        let (deployment, name, app) = try formerDeployment()
        let path = deployment.folder.database
        var database: OpaquePointer?
        try #require(sqlite3_open(path, &database) == SQLITE_OK)
        let record = #"{"account":\#(JSONValue.string(name.description).text)}"#
        let sql = """
            PRAGMA secure_delete = OFF;
            CREATE TABLE scratch (number INTEGER PRIMARY KEY, record TEXT);
            INSERT INTO scratch VALUES (1, 'first'), (2, '\(record)');
            DELETE FROM scratch WHERE number = 2;
            PRAGMA wal_checkpoint(TRUNCATE)
            """
        try #require(sqlite3_exec(database, sql, nil, nil, nil) == SQLITE_OK)
        sqlite3_close(database)
        let spellings = [Data(name.bytes), Data(#"alice \"the\""#.utf8)]
        func found() throws -> [Bool] {
            let bytes = try Data(contentsOf: URL(fileURLWithPath: path))
            return spellings.map { bytes.range(of: $0) != nil }
        }
        #expect(try found() == [true, true])
        #expect(try deployment.eraseAccount(name, of: app, at: 9).files == .absent)
        #expect(try found() == [false, false])
    }

    @Test func anAlteredLogIsNotMadeToLookIntact() throws {
        let (deployment, name, app) = try formerDeployment()
        let chain = deployment.auditChain
        let forged = AuditDraft { (sealed) throws(OperationalError) in
            let head = sealed.flatMap { chain.head($0) } ?? .empty
            let record = Array(#"{"number":\#(head.number + 1),"app":"demo","account":"mallory"}"#.utf8)
            return (AuditRow(number: head.number + 1, record: record, tag: head.tag), sealed ?? [])
        }
        try deployment.store.set(.meterBegan, to: [2], recording: forged)
        let before = try deployment.verifyAudit().findings
        #expect(!before.isEmpty)
        #expect(throws: OperationalError.self) { try deployment.rewriteAudit() }
        #expect(throws: OperationalError.self) { try deployment.eraseAccount(name, of: app, at: 9) }
        #expect(try deployment.verifyAudit().findings == before)
        #expect(try deployment.account(name, of: app).isErased == false)
    }

    @Test func anErasedNameStaysTaken() throws {
        let deployment = try deployment(folder.data)
        let (app, other) = (try #require(AppName("demo")), try #require(AppName("other")))
        for app in [app, other] { _ = try deployment.addApp(app, settings: [], requiring: .signed, at: 5) }
        let name = try AccountName(normalizing: "alice")
        let made = try deployment.addAccount(name, of: app, password: nil, userID: 42, at: 6)
        let erased = try deployment.eraseAccount(name, of: app, at: 7)
        #expect(erased == AccountErasure(ended: [], files: .absent))
        #expect(try deployment.eraseAccount(name, of: app, at: 7) == erased, "a second time, for the files")
        let row = try #require(try deployment.store.account(made.number))
        #expect(row.isErased && row.state == .removed && row.userID == nil && row.name != name)
        #expect(throws: OperationalError.self) {
            try deployment.addAccount(name, of: app, password: nil, at: 8)
        }
        #expect(throws: OperationalError.self) { try deployment.eraseAccount(row.name, of: app, at: 8) }
        #expect(throws: OperationalError.self) { try deployment.unlockAccount(row.name, of: app, at: 8) }
        _ = try deployment.addAccount(name, of: other, password: nil, userID: 42, at: 8)
        _ = try deployment.addAccount(
            AccountName(normalizing: "bob"), of: app, password: nil, userID: 42, at: 8)
        #expect(try deployment.verifyAudit().findings == [])
        #expect(try deployment.tombstone(of: name, in: app) != deployment.tombstone(of: name, in: other))
        // The tombstone needs the key: the same name has another one elsewhere.
        let elsewhere = TemporaryFolder()
        let second = try AuthorityTests.deployment(elsewhere.data)
        #expect(try second.tombstone(of: name, in: app) != deployment.tombstone(of: name, in: app))
    }
}
