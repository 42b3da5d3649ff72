import CSQLite
import CountersignGate
import CountersignSQL
import CountersignWire
import Synchronization
import Testing

@testable import CountersignAuthority

/// The store does the same work for a name with an account and for a name without one: one look-up that finds
/// a row and one that finds none.
@Suite struct AccountLookupTests {
    private let folder = TemporaryFolder()

    /// The look-ups that one question causes, sorted: whether each found an account.
    private func work(_ lookup: ConstantTimeAccountLookup, _ store: FailingStore, _ name: String) throws
        -> [Bool]
    {
        store.nameLookups.withLock { $0 = [] }
        _ = try lookup.account(AccountName(normalizing: name), of: #require(AppName("demo")))
        return store.nameLookups.withLock { $0 }.sorted { !$0 && $1 }
    }

    private func store(accounts names: [String]) throws -> FailingStore {
        let deployment = try AuthorityTests.deployment(folder.data)
        let app = try #require(AppName("demo"))
        _ = try deployment.addApp(app, settings: [], requiring: .signed, at: 5)
        for name in names {
            let account = AccountDraft(
                app: app, name: try AccountName(normalizing: name), created: 7, tombstones: nil)
            let recorded = deployment.auditDraft(for: .accountAdd, on: .account(account.name, of: app))
            _ = try deployment.store.insert(account, recording: recorded)
        }
        return FailingStore(
            StorePlace.sqlite(path: deployment.folder.database).open(authenticatingBy: deployment.rows))
    }

    @Test(arguments: ["alice", "bob"]) func anUnknownNameCostsWhatAKnownOneDoes(_ first: String) throws {
        let store = try store(accounts: ["alice"])
        let lookup = ConstantTimeAccountLookup(store)
        // The first question of a process has no reference account in memory yet.
        #expect(try work(lookup, store, first) == [false, true])
        for name in ["alice", "bob", "alice", "carol"] {
            #expect(try work(lookup, store, name) == [false, true], "\(name)")
        }
    }

    @Test("the account that was found first may be erased, and its name is then in no memory")
    func erasedReference() throws {
        let store = try store(accounts: ["first", "alice", "carol"])
        let lookup = ConstantTimeAccountLookup(store)
        #expect(try work(lookup, store, "alice") == [false, true])
        let deployment = try AuthorityTests.deployment(folder.data)
        let app = try #require(AppName("demo"))
        _ = try deployment.eraseAccount(AccountName(normalizing: "alice"), of: app, at: 9)
        for name in ["bob", "alice", "carol", "bob"] {
            #expect(try work(lookup, store, name) == [false, true], "\(name)")
        }
        // Without any other account, too.
        for name in ["first", "carol"] {
            _ = try deployment.eraseAccount(AccountName(normalizing: name), of: app, at: 9)
        }
        #expect(try work(lookup, store, "bob") == [false, true])
    }

    @Test("an altered row tells no other name, with or without an account")
    func alteredReference() throws {
        let store = try store(accounts: ["alice", "bob"])
        let lookup = ConstantTimeAccountLookup(store)
        #expect(try work(lookup, store, "alice") == [false, true])
        var database: OpaquePointer?
        try #require(sqlite3_open("\(folder.data)/countersign.db", &database) == SQLITE_OK)
        defer { sqlite3_close(database) }
        let sql = "UPDATE account SET user_id = 42 WHERE name = 'alice'"
        try #require(sqlite3_exec(database, sql, nil, nil, nil) == SQLITE_OK)
        for name in ["nobody", "bob", "nobody", "bob"] {
            #expect(try work(lookup, store, name) == [false, true], "\(name)")
        }
        let app = try #require(AppName("demo"))
        #expect(throws: OperationalError.self) {
            try lookup.account(AccountName(normalizing: "alice"), of: app)
        }
    }
}
