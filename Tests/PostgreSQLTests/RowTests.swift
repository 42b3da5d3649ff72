import CountersignAuthority
import CountersignGate
import CountersignSchemes
import CountersignSeal
import CountersignWire
import DatabaseFixture
import Foundation
import StoreContract
import Testing

@testable import CountersignSQL

/// A row that a program without the key altered or deleted is found, and none that is altered
/// is used.
@Suite(.enabled(if: TestDatabases.isThere, "no PostgreSQL server can be started"))
struct RowTests {
    /// A store with an account and a session, and a connection of a program that switches triggers off.
    private func made() throws -> (store: any Store, rows: RowAuthenticator, other: Database) {
        let address = try #require(TestDatabases.shared).make()
        let rows = try #require(
            RowAuthenticator(key: Secret(copying: [UInt8](repeating: 7, count: 32).span)))
        let store = StorePlace.postgreSQL(address).open(authenticatingBy: rows)
        try store.prepare()
        _ = try store.tagAllRows()
        let contract = StoreContract(store)
        let shop = try #require(AppName("shop"))
        _ = try store.insert(App(name: shop, created: 1), recording: .counting)
        let account = try contract.added(contract.accountDraft("ada"))
        _ = try contract.open(StoreContract.session(1, of: account), .single)
        let other = Database(try PostgreSQLConnection(to: address))
        try other.execute("SET session_replication_role = replica")
        return (store, rows, other)
    }

    @Test(
        "a change by another program is found",
        arguments: [
            ("UPDATE account SET state = 'locked'", "account 1"),
            ("UPDATE account SET row_tag = NULL", "account 1"),
            ("UPDATE session SET used = used + 1", "session "),
            ("DELETE FROM session", "session: the rows do not add up"),
            ("DELETE FROM known_device", "known_device: the rows do not add up"),
            ("UPDATE row_digest SET value = substr(value, 1, 40) WHERE name = 'session'", "session: "),
            ("UPDATE app SET created = 2", "app shop"),
        ])
    func isFound(_ row: (sql: String, finding: String)) throws {
        let (store, _, other) = try made()
        #expect(try store.verifyRows().findings.isEmpty)
        try other.execute(row.sql)
        let findings = try store.verifyRows().findings.map(\.text)
        #expect(findings.contains { $0.hasPrefix(row.finding) }, "\(findings)")
    }

    @Test func noAlteredRowIsUsed() throws {
        let (store, rows, other) = try made()
        try other.execute("UPDATE account SET state = 'locked'; UPDATE session SET used = used + 1")
        #expect(throws: OperationalError.self) { try store.account(1) }
        #expect(throws: OperationalError.self) { try store.session(StoreContract.id(1)) }
        #expect(try store.sessions(of: 1).isEmpty)
        #expect(rows.counts.refusals >= 3)
        #expect(throws: OperationalError.self) {
            try store.change(1, if: .anything, applying: .unlock, at: 9, recording: .counting)
        }
    }

    @Test("an update by this program does not make an altered row authentic")
    func updatesDoNotHeal() throws {
        let (store, _, other) = try made()
        try other.execute("UPDATE session SET account = account, device_class = 'desktop'")
        _ = try store.end(.all, with: SessionTermination(.revoked, at: 9), recording: nil)
        #expect(throws: OperationalError.self) { try store.session(StoreContract.id(1)) }
        #expect(try !store.verifyRows().findings.isEmpty)
    }

    @Test("later changes do not make a table whole that was put back with its digest", arguments: 1...2)
    func earlierTable(_ missing: Int) throws {
        let (store, _, other) = try made()
        let account = try #require(try store.account(1))
        func signIn(_ number: Int) throws {
            _ = try StoreContract(store).open(StoreContract.session(number, of: account), .unlimited)
        }
        for number in 10..<15 { try signIn(number) }
        try other.execute(
            """
            CREATE TEMP TABLE sessions AS SELECT * FROM session;
            CREATE TEMP TABLE digests AS SELECT * FROM row_digest WHERE name = 'session';
            """)
        for number in 0..<missing { try signIn(20 + number) }
        try other.execute(
            """
            DELETE FROM session; INSERT INTO session SELECT * FROM sessions;
            UPDATE row_digest SET value = (SELECT value FROM digests) WHERE name = 'session'
            """)
        for number in 0..<missing + 2 {
            #expect(try store.verifyRows().findings == [.putBack(table: "session")])
            let ended = SessionTermination(.revoked, at: 9)
            _ = try store.end(.one(StoreContract.id(10 + number)), with: ended, recording: nil)
        }
        _ = try store.tagAllRows()
        try signIn(30)
        #expect(try store.verifyRows().findings == [])
    }

    @Test("an open connection finds that the content was put back, by its next change")
    func earlierContent() throws {
        let address = try #require(TestDatabases.shared).make()
        let folder = FileManager.default.temporaryDirectory.appendingPathComponent(UUID().uuidString).path
        defer { try? FileManager.default.removeItem(atPath: folder) }
        func opened(_ copy: AcceptedCopy = .latest) throws -> Deployment {
            try Deployment(
                folder: DataFolder(folder, absence: .create), store: StorePlace.postgreSQL(address).open(),
                environment: [:], accepting: copy)
        }
        let running = try opened()
        _ = try running.addApp(#require(AppName("first")), settings: [], at: 5)
        let other = Database(try PostgreSQLConnection(to: address))
        let tables = ["app", "app_setting", "audit", "meta", "row_digest", "revision", "writing"]
        try other.execute("SET session_replication_role = replica")
        for table in tables { try other.execute("CREATE TEMP TABLE old_\(table) AS SELECT * FROM \(table)") }
        _ = try running.addApp(#require(AppName("second")), settings: [], at: 5)
        for table in tables {
            try other.execute("DELETE FROM \(table); INSERT INTO \(table) SELECT * FROM old_\(table)")
        }
        let fault = #expect(throws: OperationalError.self) {
            try running.addApp(#require(AppName("third")), settings: [], at: 5)
        }
        #expect(fault?.message.contains("put back to an earlier copy") == true, "\(fault?.message ?? "")")
        #expect(throws: OperationalError.self) { try opened() }
        #expect(try opened(.any).store.apps().map(\.name.description) == ["first"])
    }

    @Test("another program cannot write rows by mistake")
    func mistakesAreRefused() throws {
        let (_, _, other) = try made()
        try other.execute("SET session_replication_role = origin")
        for sql in ["UPDATE account SET state = 'locked'", "DELETE FROM session", "DELETE FROM audit"] {
            let fault = #expect(throws: OperationalError.self) { try other.execute(sql) }
            #expect(
                fault?.message.contains("countersign alone") == true
                    || fault?.message.contains("only added to") == true)
        }
    }

    @Test("a store that was opened without the key uses no row, and changes none")
    func withoutTheKey() throws {
        let address = try #require(TestDatabases.shared).make()
        let rows = try #require(
            RowAuthenticator(key: Secret(copying: [UInt8](repeating: 7, count: 32).span)))
        let store = StorePlace.postgreSQL(address).open(authenticatingBy: rows)
        try store.prepare()
        _ = try store.tagAllRows()
        let contract = StoreContract(store)
        _ = try store.insert(App(name: #require(AppName("shop")), created: 1), recording: .counting)
        let account = try contract.added(contract.accountDraft("ada"))
        let bare = StorePlace.postgreSQL(address).open()
        #expect(throws: OperationalError.self) { try bare.account(account.number) }
        #expect(throws: OperationalError.self) {
            try bare.insert(App(name: #require(AppName("other")), created: 1), recording: .counting)
        }
        #expect(try store.verifyRows().findings.isEmpty)
    }
}
