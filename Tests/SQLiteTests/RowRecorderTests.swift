import CountersignAuthority
import CountersignGate
import CountersignSchemes
import CountersignSeal
import CountersignWire
import Foundation
import StoreContract
import Testing

@testable import CountersignSQL

/// Rows that decide who a caller is are authenticated: the contract of the store holds with tags and digests,
/// which stay right through every kind of change; and a row that another program changed is found.
@Suite struct RowRecorderTests {
    @Test("every change keeps the tags and digests right, over one connection and over many")
    func contract() throws {
        for isShared in [true, false] {
            try TaggedStore.make { path, store in
                let rows = try #require(TaggedStore.rows)
                let contract = StoreContract(
                    opening: { isShared ? store : SQLStore(path: path, rows: rows) },
                    preparing: { opened in
                        // Digests begin when the contract has made the store: with its first app.
                        if FileManager.default.fileExists(atPath: path), try opened.countRows() == 0 {
                            _ = try opened.tagAllRows()
                        }
                    })
                try contract.holds()
                try contract.races()
                let found = try TaggedStore.findings(path)
                #expect(found.findings == [] && found.rows > 20)
            }
        }
    }

    @Test("every column of an authenticated table is covered, or excluded by name")
    func columns() throws {
        try TaggedStore.make { path, store in
            try store.prepare()
            let database = try Database(path: path)
            for table in AuthenticatedTable.all {
                let columns = try database.rows("SELECT name FROM pragma_table_info('\(table.name)')") {
                    $0.text(0)
                }
                let known = table.columns + table.excluded + [AuthenticatedTable.tagColumn]
                #expect(Set(columns) == Set(known) && columns.count == known.count, "\(table.name)")
            }
        }
    }

    @Test("every table and every value of `meta` is authenticated, or exempt with a reason")
    func exemptions() throws {
        try TaggedStore.make { path, store in
            try store.prepare()
            let found = try Database(path: path).rows("SELECT name FROM sqlite_schema WHERE type = 'table'") {
                $0.text(0)
            }
            let tables = Set(found).union(PostgreSQLSchema.expected.keys).subtracting(["functions"])
            let covered = Set(AuthenticatedTable.all.map(\.name))
            #expect(tables.subtracting(covered) == Set(AuthenticatedTable.exemptions.keys))
            #expect(
                tables == Set(AuthenticatedTable.afterRestoration.keys),
                "AfterRestoration.swift: what a restoration does about the rows of each table")
            #expect(covered.isDisjoint(with: AuthenticatedTable.exemptions.keys))
        }
        let names = Set(AuthenticatedTable.meta.names)
        for name in MetaName.allCases {
            #expect(names.contains(name.rawValue) == (name.exemption == nil), "\(name)")
        }
    }

    @Test("the connection has a copy of each of the file's triggers that change data")
    func triggers() throws {
        try TaggedStore.make { path, store in
            try store.prepare()
            let database = try Database(path: path)
            let names = try database.rows(
                "SELECT name FROM sqlite_schema WHERE type = 'trigger' AND tbl_name <> 'audit' ORDER BY name"
            ) { $0.text(0) }
            let copies = StoreLayout.current.connectionTriggers.compactMap {
                $0.split(separator: " ").dropFirst(3).first.map(String.init)
            }
            #expect(names == copies.sorted() && !names.isEmpty)
        }
    }

    @Test(
        "a change by another program is found and refused",
        arguments: [
            ("UPDATE app SET created = 2", "app shop"),
            ("UPDATE app_setting SET text = '90s'", "app_setting shop window"),
            (
                "INSERT INTO app_setting (app, name, text) VALUES ('shop', 'enforcement', 'x')",
                "app_setting shop"
            ),
            ("DELETE FROM app_setting", "app_setting"),
            ("UPDATE release SET platform = 'android'", "release r_1"),
            ("UPDATE release SET retired_at = NULL, update_url = NULL", "release r_1"),
            ("UPDATE release_setting SET text = 'off'", "release_setting r_1 debug"),
            ("DELETE FROM release_setting", "release_setting"),
            ("UPDATE release_rollout SET percent = 6", "release_rollout r_1"),
            ("DELETE FROM release_rollout", "release_rollout"),
            ("UPDATE account SET state = 'locked' WHERE number = 1", "account 1"),
            ("UPDATE account SET user_id = 42 WHERE number = 1", "account 1"),
            ("UPDATE account SET row_tag = NULL WHERE number = 1", "account 1"),
            ("UPDATE account SET row_tag = zeroblob(32) WHERE number = 1", "account 1"),
            ("UPDATE session SET account = 3 - account", "session"),
            ("UPDATE session SET used = used + 1 WHERE account = 1", "session"),
            ("UPDATE session SET ended_at = 1, end_reason = 'revoked' WHERE account = 1", "session"),
            ("DELETE FROM session WHERE account = 1", "session"),
            ("UPDATE row_digest SET value = zeroblob(100) WHERE name = 'session'", "session"),
            ("DELETE FROM row_digest WHERE name = 'account'", "account"),
        ])
    func changed(_ attack: (sql: String, named: String)) throws {
        try TaggedStore.make { path, store in
            try TaggedStore.fill(store)
            #expect(try TaggedStore.findings(path).findings == [])
            store.close()
            let database = try Database(path: path)
            #expect(try database.run(attack.sql) > 0)
            let found = try TaggedStore.findings(path)
            #expect(found.findings.count >= 1)
            #expect(
                found.findings.contains { $0.text.hasPrefix(attack.named) }, "\(found.findings.map(\.text))")
            // A change of the row by us does not make it whole.
            let other = SQLStore(path: path, rows: try #require(TaggedStore.rows))
            _ = try other.end(.all, with: SessionTermination(.revoked, at: 9), recording: nil)
            #expect(try other.verifyRows().findings.count >= 1)
        }
    }

    @Test("rows that are put back, moved or taken from another deployment are found")
    func putBack() throws {
        try TaggedStore.make { path, store in
            try TaggedStore.fill(store)
            let database = try Database(path: path)
            try database.execute(
                "CREATE TEMP TABLE before AS SELECT * FROM session WHERE account = 1;")
            _ = try store.end(.all, with: SessionTermination(.revoked, at: 9), recording: nil)
            #expect(try TaggedStore.findings(path).findings == [])
            try database.execute(
                "DELETE FROM session WHERE account = 1; INSERT INTO session SELECT * FROM temp.before")
            let found = try TaggedStore.findings(path)
            #expect(
                found.findings == [.unbalanced(table: "session", groups: [1], difference: 0)],
                "\(found.findings.map(\.text))")
            // The group is refused, and no other.
            let rows = try #require(
                RowAuthenticator(key: Secret(copying: [UInt8](repeating: 7, count: 32).span)))
            let other = SQLStore(path: path, rows: rows)
            #expect(try other.sessions(of: 1).count == 1)
            rows.note(try other.verifyRows())
            #expect(try other.sessions(of: 1).isEmpty && other.sessions(of: 2).count == 1)
            #expect(rows.takeNews().count == 1)

            let stranger = try #require(RowAuthenticator(key: Secret(random: 32)))
            let elsewhere = SQLStore(path: path, rows: stranger)
            #expect(throws: OperationalError.self) { try elsewhere.account(1) }
            #expect(try elsewhere.verifyRows().findings.count > 8)
        }
    }

    @Test("a table that is put back with its digest does not fit the others, nor all tables the audit log")
    func putBackWithDigest() throws {
        try TaggedStore.make { path, store in
            try TaggedStore.fill(store)
            let database = try Database(path: path)
            try database.execute(
                """
                CREATE TEMP TABLE sessions AS SELECT * FROM session;
                CREATE TEMP TABLE digests AS SELECT * FROM row_digest;
                """)
            let app = try #require(AppName("shop"))
            _ = try store.end(.all, with: SessionTermination(.revoked, at: 9), recording: .counting)
            _ = try store.change(app, applying: [("debug", .text("on"))], recording: .counting)
            #expect(try TaggedStore.findings(path).findings == [])
            try database.execute("DELETE FROM session; INSERT INTO session SELECT * FROM temp.sessions;")
            let restore =
                "UPDATE row_digest SET value = (SELECT value FROM temp.digests WHERE name = row_digest.name)"
            try database.execute("\(restore) WHERE name = 'session'")
            #expect(try TaggedStore.findings(path).findings == [.putBack(table: "session")])
            // With the summary, the other tables do not fit.
            try database.execute("\(restore) WHERE name = 'all'")
            let others = try TaggedStore.findings(path).findings
            #expect(others.first == .putBack(table: "app_setting"), "\(others.map(\.text))")
            guard case .otherLog(let recorded, let last)? = others.last else {
                Issue.record("the log of another state is not found")
                return
            }
            #expect(recorded < last)
            // A change of ours does not make them fit.
            _ = try store.change(app, applying: [("debug", nil)], recording: .counting)
            #expect(try TaggedStore.findings(path).findings.count >= 2)
        }
    }

    @Test("a trigger or a view in the file changes nothing in our name")
    func planted() throws {
        try TaggedStore.make { path, store in
            try TaggedStore.fill(store)
            store.close()
            let database = try Database(path: path)
            try database.execute(
                """
                CREATE TRIGGER planted AFTER UPDATE ON session BEGIN
                    UPDATE account SET user_id = 42 WHERE number = 1;
                END
                """)
            let other = SQLStore(path: path, rows: try #require(TaggedStore.rows))
            _ = try other.end(.all, with: SessionTermination(.revoked, at: 9), recording: nil)
            #expect(try other.account(1)?.userID == nil)
            #expect(try other.verifyRows().findings == [])
        }
    }

    @Test("without the key, rows with tags are neither used nor changed")
    func withoutKey() throws {
        try TaggedStore.make { path, store in
            try TaggedStore.fill(store)
            let bare = SQLStore(path: path)
            #expect(throws: OperationalError.self) { try bare.account(1) }
            let fault = #expect(throws: OperationalError.self) {
                try bare.end(.all, with: SessionTermination(.revoked, at: 9), recording: nil)
            }
            #expect(fault?.message.contains("without the rows' key") == true)
            #expect(try TaggedStore.findings(path).findings == [])
        }
    }

    @Test("an undone change leaves no trace in the digests")
    func undone() throws {
        try TaggedStore.make { path, store in
            try TaggedStore.fill(store)
            func change(_ store: any Store) throws(OperationalError) {
                _ = try store.end(.all, with: SessionTermination(.revoked, at: 9), recording: nil)
                throw OperationalError(.failed, message: "undone")
            }
            func keep(_ store: any Store) throws(OperationalError) {
                _ = try store.end(
                    .account(2, except: nil), with: SessionTermination(.revoked, at: 9), recording: nil)
            }
            let changes: [(any Store) throws(OperationalError) -> Void] = [change, keep, change]
            _ = try store.applyTogether(changes)
            #expect(try TaggedStore.findings(path).findings == [])
            #expect(
                try store.liveSessions(of: 1, newest: 9).count == 1
                    && store.liveSessions(of: 2, newest: 9).isEmpty)
        }
    }
}
