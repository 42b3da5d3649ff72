import CSQLite
import CountersignAuthority
import CountersignGate
import CountersignWire
import Foundation
import StoreContract
import Testing

@testable import CountersignSQL

/// A file whose tables or indices are not those of the migrations is refused, and a change that has no effect
/// is an error.
@Suite struct SchemaTests {
    /// Gives the table of sessions a constraint that turns a second revocation of an account into nothing.
    private func rebuildSessions(at path: String) throws {
        let database = try Database(path: path)
        func texts(_ sql: String) throws -> [String] { try database.rows(sql) { $0.text(0) } }
        let names = try texts("SELECT name FROM pragma_table_info('session')").joined(separator: ", ")
        let table = try #require(try texts("SELECT sql FROM sqlite_schema WHERE name = 'session'").first)
        let others = try texts(
            "SELECT sql FROM sqlite_schema WHERE tbl_name = 'session' AND type <> 'table' AND sql IS NOT NULL"
        )
        try database.execute("ALTER TABLE session RENAME TO kept")
        try database.execute(
            String(table.dropLast(") STRICT".count))
                + ", UNIQUE (account, end_reason) ON CONFLICT IGNORE) STRICT")
        try database.execute("INSERT INTO session (\(names)) SELECT \(names) FROM kept; DROP TABLE kept")
        for sql in others { try database.execute(sql) }
    }

    @Test("a revocation that a constraint ignores does not report success")
    func rebuilt() throws {
        try TaggedStore.make { path, store in
            try TaggedStore.fill(store)
            let account = try #require(try store.account(1))
            let session = try StoreContract.session(7, of: account)
            guard case .yes = try StoreContract(store).open(session, .unlimited) else {
                throw OperationalError(.failed, message: "not opened")
            }
            let end = SessionTermination(.revoked, at: 9)
            _ = try store.end(.one(StoreContract.id(0)), with: end, recording: nil)
            try rebuildSessions(at: path)
            // Under a running server:
            #expect(throws: OperationalError.self) {
                try store.end(.one(session.id), with: end, recording: nil)
            }
            #expect(try store.session(session.id)?.end == nil)
            let found = try store.verifyRows()
            #expect(Set(found.findings.map(\.table)) == ["session"])
            #expect(found.groups[AuthenticatedTable.session.number]?.count == 64)
            store.close()
            let fault = #expect(throws: OperationalError.self) { try store.revision() }
            #expect(fault?.message.contains("session: the table session was rebuilt") == true)
        }
    }

    @Test("an index that was added or removed is named; other tables and triggers may be there")
    func indices() throws {
        try TaggedStore.make { path, store in
            try TaggedStore.fill(store)
            func message(after sql: String) throws -> String? {
                store.close()
                try Database(path: path).execute(sql)
                do { _ = try store.revision() } catch let error as OperationalError { return error.message }
                return nil
            }
            #expect(
                try message(after: "CREATE TABLE mine (a); CREATE INDEX of_mine ON mine (a)") == nil)
            #expect(
                try message(after: "CREATE TRIGGER t AFTER INSERT ON app BEGIN SELECT 1; END; ANALYZE") == nil
            )
            let added = try message(after: "CREATE INDEX planted ON account (state)")
            #expect(added?.contains("account: the index planted was added") == true)
            #expect(try message(after: "DROP INDEX planted") == nil)
            let removed = try message(after: "DROP INDEX account_user_id")
            #expect(removed?.contains("account: the index account_user_id is missing") == true)
        }
    }

    @Test("an index that leaves rows out, under the definition that it should have, is found")
    func partialIndex() throws {
        try TaggedStore.make { path, store in
            try TaggedStore.fill(store)
            store.close()
            let database = try Database(path: path)
            try database.execute(
                """
                CREATE TEMP TABLE kept AS SELECT sql FROM sqlite_schema WHERE name = 'session_of_account';
                DROP INDEX session_of_account;
                CREATE INDEX session_of_account ON session (account, ended_at, created) WHERE account <> 1;
                PRAGMA writable_schema = ON;
                UPDATE sqlite_schema SET sql = (SELECT sql FROM kept) WHERE name = 'session_of_account'
                """)
            let found = try TaggedStore.findings(path)
            guard case .mismatched("session", _)? = found.findings.first, found.findings.count == 1 else {
                return #expect(Bool(false), "\(found.findings)") as Void
            }
            #expect(found.groups[AuthenticatedTable.session.number]?.count == 64)
            // What an operator accepts is what the indices find, too.
            _ = try store.deleteUnverified(groups: [:])
            #expect(try TaggedStore.findings(path).findings == [])
        }
    }

    /// The layout of a later build.
    private static let later = StoreLayout.current.adding("one more column", kind: .contracting) { _ in
        "ALTER TABLE session ADD COLUMN more INTEGER; CREATE TABLE more (number INTEGER NOT NULL) STRICT;"
    }

    @Test("a store is made by this build's layout, or by all migrations of a later one")
    func isMade() throws {
        for layout in [StoreLayout.current, Self.later] {
            try TaggedStore.make { path, _ in
                let store = SQLStore(path: path, layout: layout)
                #expect(try store.schemaPlan().pending.map(\.level) == Array(1...layout.level))
                #expect(try store.schemaPlan().isBackedUp == false)
                for _ in 0..<2 { try store.prepare() }
                let database = try Database(path: path)
                #expect(try database.schemaLevel() == layout.level)
                #expect(try SQLiteSchema.differences(from: layout, in: database) == [])
                let other = layout == .current ? Self.later : StoreLayout.current
                #expect(try SQLiteSchema.differences(from: other, in: database) != [])
                #expect(try store.revision() == 0)
            }
        }
    }

    @Test("an earlier file is copied before it is upgraded, with all that is in it")
    func isBackedUp() throws {
        try TaggedStore.make { path, store in
            try TaggedStore.fill(store)
            store.close()
            let accounts = try Database(path: path).integer("SELECT count(*) FROM account")
            let later = SQLStore(path: path, rows: TaggedStore.rows, layout: Self.later)
            let level = StoreLayout.current.level
            let plan = try later.schemaPlan()
            #expect(plan.level == level && plan.target == level + 1 && plan.isBackedUp)
            #expect(plan.pending.map(\.name) == ["one more column"] && plan.hindering.isEmpty)
            let outcome = try later.prepare(consenting: .expanding, verifyingBy: nil)
            #expect(outcome.done == plan.pending)
            let backup = try #require(outcome.backup)
            #expect(backup.hasPrefix("\(path).level-\(level)."))
            let mode = try FileManager.default.attributesOfItem(atPath: backup)[.posixPermissions]
            #expect(mode as? Int == 0o600)
            for rest in ["-wal", "-shm", "-journal"] {
                #expect(!FileManager.default.fileExists(atPath: backup + rest))
            }
            let copy = try Database(path: backup)
            #expect(try copy.schemaLevel() == level)
            #expect(try copy.integer("SELECT count(*) FROM account") == accounts)
            #expect(try copy.rows("PRAGMA integrity_check") { $0.text(0) } == ["ok"])
            // The next preparation has nothing to do.
            #expect(try later.prepare(consenting: .all, verifyingBy: nil) == SchemaOutcome())
            #expect(try later.schemaPlan().pending.isEmpty)
            // What it holds is authentic, and this build refuses it.
            #expect(try later.verifyRows().findings == [])
            let fault = #expect(throws: OperationalError.self) { try SQLStore(path: path).prepare() }
            #expect(fault?.message.contains("made by a newer countersign") == true)
        }
    }

    @Test("the names of copies sort by time")
    func namesOfCopies() {
        let times = [(9, 999_999_999), (10, 5), (10, 29_640_112), (10, 249_929_721), (11, 0)]
        let names = times.map { SQLiteBackup.timeText(at: timespec(tv_sec: $0.0, tv_nsec: $0.1)) }
        #expect(names == names.sorted() && Set(names).count == names.count)
        #expect(names[1] == "1970-01-01T00:00:10Z-000000005")
    }

    @Test("a copy that fails leaves nothing behind")
    func backupFails() throws {
        try TaggedStore.make { path, _ in
            let folder = String(path[..<(path.lastIndex(of: "/") ?? path.startIndex)])
            for missing in ["\(folder)/none/countersign.db", "\(folder)/none.db"] {
                #expect(throws: OperationalError.self) { try SQLiteBackup.make(of: missing, level: 18) }
            }
            let left = try FileManager.default.contentsOfDirectory(atPath: folder)
            #expect(!left.contains { $0.hasPrefix("none") })
        }
    }

    @Test("an earlier layout that was changed is not upgraded")
    func changedBefore() throws {
        try TaggedStore.make { path, store in
            try store.prepare()
            store.close()
            let database = try Database(path: path)
            try database.execute("CREATE INDEX mine ON session (device_name)")
            let later = SQLStore(path: path, layout: Self.later)
            let fault = #expect(throws: OperationalError.self) { try later.prepare() }
            #expect(fault?.message.contains("session: the index mine was added") == true)
            #expect(try database.schemaLevel() == StoreLayout.current.level)
            #expect(try !database.hasTable("more"), "all of it is undone")
            try database.execute("DROP INDEX mine")
            try later.prepare()
        }
    }

    @Test("the usage of keyed requests follows their rows, by scope, by kind and by network")
    func usage() throws {
        try TaggedStore.make { path, store in
            try store.prepare()
            let database = try Database(path: path)
            func usage(after sql: String) throws -> [String] {
                try database.execute(sql)
                return try database.rows("SELECT owner, keys, bytes FROM idempotent_use ORDER BY owner") {
                    "\($0.text(0)): \($0.integer(1)), \($0.integer(2))"
                }
            }
            let begun = try usage(
                after: """
                    INSERT INTO idempotent_request (scope, network, key, digest, begun) VALUES
                        ('account 1', NULL, x'01', x'00', 1), ('release r_1', 'network 1', x'02', x'00', 1),
                        ('release r_2', 'network 1', x'03', x'00', 1)
                    """)
            #expect(
                begun == [
                    "account: 1, 0", "account 1: 1, 0", "network 1: 2, 0", "release: 2, 0",
                    "release r_1: 1, 0", "release r_2: 1, 0",
                ])
            let finished = try usage(
                after: """
                    UPDATE idempotent_request SET status = 200, fields = x'0102', body = x'010203'
                        WHERE scope <> 'release r_2';
                    DELETE FROM idempotent_request WHERE scope = 'release r_2'
                    """)
            #expect(
                finished == [
                    "account: 1, 5", "account 1: 1, 5", "network 1: 1, 5", "release: 1, 5",
                    "release r_1: 1, 5",
                ])
            #expect(try usage(after: "DELETE FROM idempotent_request") == ["account: 0, 0", "release: 0, 0"])
        }
    }

    @Test("comparing the schema takes a bounded number of steps")
    func cost() throws {
        try TaggedStore.make { path, store in
            try TaggedStore.fill(store)
            let database = try Database(path: path)
            #expect(try SQLiteSchema.differences(from: .current, in: database) == [])
            let handle = try #require(database.sqlite?.handle)
            var steps = 0
            let differences = try withUnsafeMutablePointer(to: &steps) { counter in
                // After every 100 instructions of SQLite's virtual machine.
                sqlite3_progress_handler(
                    handle, 100,
                    { context in
                        context?.assumingMemoryBound(to: Int.self).pointee += 100
                        return 0
                    }, counter)
                defer { sqlite3_progress_handler(handle, 0, nil, nil) }
                return try SQLiteSchema.differences(from: .current, in: database)
            }
            #expect(differences == [])
            #expect((1..<200_000).contains(steps), "\(steps)")
        }
    }
}
