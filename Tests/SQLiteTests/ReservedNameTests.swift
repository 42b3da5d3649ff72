import CountersignAuthority
import CountersignWire
import StoreContract
import Testing

@testable import CountersignSQL

/// Who deletes or alters the row of an account, so that its name or user id seems to be free, gives it to
/// nobody: the accounts are verified before one is added, without a background check.
@Suite struct ReservedNameTests {
    private func takes(_ name: String, in store: SQLStore) throws -> Bool {
        var draft = try StoreContract(store).accountDraft(name)
        draft.tombstones = AccountTombstones(name: AccountTombstone([9]), userID: nil)
        guard case .yes = try store.insert(draft, recording: .counting) else { return false }
        return true
    }

    @Test(
        "no name is given while an account may be missing",
        arguments: [
            "UPDATE account SET name = 'zz' WHERE name = 'ada'", "DELETE FROM account WHERE name = 'ada'",
            "UPDATE account SET user_id = NULL, state = 'locked' WHERE name = 'bob'",
        ])
    func missing(sql: String) throws {
        try TaggedStore.make { path, store in
            try TaggedStore.fill(store)
            #expect(try takes("eve", in: store))
            #expect(try !takes("ada", in: store))
            try store.verifyNames()
            let database = try Database(path: path)
            try database.execute("CREATE TEMP TABLE kept AS SELECT * FROM account")
            #expect(try database.run(sql) == 1)
            let name = sql.contains("bob") ? "new" : "ada"
            #expect(throws: OperationalError.self) { try takes(name, in: store) }
            let change = AccountChange.setUserID(77, reserving: nil)
            #expect(throws: OperationalError.self) {
                try store.change(3, if: .anything, applying: change, at: 9, recording: .counting)
            }
            #expect(throws: OperationalError.self) { try store.verifyNames() }
            // Another connection, as a command's.
            let other = SQLStore(path: path, rows: TaggedStore.makeRows())
            #expect(throws: OperationalError.self) { try takes(name, in: other) }
            // Undone, it goes on.
            try database.execute("DELETE FROM account; INSERT INTO account SELECT * FROM kept")
            #expect(try takes("new", in: store))
            #expect(try !takes("ada", in: other))
        }
    }

    @Test("two accounts of one name, in a table whose constraint was taken away and put back, are found")
    func twice() throws {
        try TaggedStore.make { path, store in
            try TaggedStore.fill(store)
            store.close()
            let database = try Database(path: path)
            let table = "sqlite_schema WHERE name = 'account'"
            try database.execute(
                """
                CREATE TEMP TABLE kept AS SELECT sql FROM \(table);
                PRAGMA writable_schema = ON;
                UPDATE sqlite_schema
                SET sql = replace(sql, 'UNIQUE (app, name)', 'UNIQUE (app, name, number)')
                WHERE name = 'account'
                """)
            let second = try Database(path: path)
            try second.execute("REINDEX account")
            #expect(try second.run("UPDATE account SET name = 'ada' WHERE name = 'bob'") == 1)
            try second.execute(
                """
                PRAGMA writable_schema = ON;
                UPDATE sqlite_schema
                SET sql = replace(sql, 'UNIQUE (app, name, number)', 'UNIQUE (app, name)')
                WHERE name = 'account'
                """)
            let found = try TaggedStore.findings(path)
            #expect(
                found.findings.contains { if case .mismatched("account", _) = $0 { true } else { false } },
                "\(found.findings)")
            #expect(throws: OperationalError.self) { try store.deleteUnverified(groups: [:]) }
        }
    }
}
