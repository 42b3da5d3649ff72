import CountersignGate
import CountersignSQLite
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
                app: app, name: try AccountName(normalizing: name), created: 7, tombstone: nil)
            let recorded = deployment.auditDraft(for: .accountAdd, on: .account(account.name, of: app))
            _ = try deployment.store.insert(account, recording: recorded)
        }
        return FailingStore(SQLiteStore(path: deployment.folder.database, rows: deployment.rows))
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
}
