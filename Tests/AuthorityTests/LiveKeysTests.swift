import CountersignAuthority
import CountersignGate
import CountersignSQL
import CountersignSchemes
import CountersignThreads
import CountersignWire
import Foundation
import Synchronization
import Testing

@Suite struct LiveKeysTests {
    @Test func aChangeByAnotherIsSeenByTheNextRequest() throws {
        let folder = TemporaryFolder()
        let app = try #require(AppName("demo"))
        let serving = try deployment(folder.data)
        let keys = try ReleaseKeyDirectory(serving)
        let id = try #require(KeyID("r_1"))
        #expect(try keys.release(for: id) == nil)

        let admin = try deployment(folder.data)
        _ = try admin.addApp(app, settings: [], at: 5)
        _ = try admin.addRelease(draft(app, id: "r_1"), at: 6)
        let key = try #require(try keys.release(for: id))
        #expect(key.app == "demo" && key.platform == "ios" && key.version == "1.0")
        #expect(key.key.secret.copied == Array("secret of r_1".utf8))
        #expect(key.retirement == nil)

        try admin.retire(id, with: AppRelease.Retirement(at: 9, updateURL: "https://example.com"))
        #expect(
            try keys.release(for: id)?.retirement
                == AppRelease.Retirement(at: 9, updateURL: "https://example.com"))
        try admin.setPolicy(["window=7s"], of: app)
        #expect(try keys.release(for: id)?.policy.window(for: .messageSignatures) == 7)
    }

    /// Another node may have retired the release.
    @Test func nothingIsFoundWithoutTheLease() throws {
        let folder = TemporaryFolder()
        let deployment = try deployment(folder.data)
        let app = try #require(AppName("demo"))
        _ = try deployment.addApp(app, settings: ["legacy-host=shop.example"], at: 5)
        _ = try deployment.addRelease(draft(app, id: "r_1"), at: 6)
        let (id, host) = (try #require(KeyID("r_1")), Array("shop.example".utf8))
        let lease = NodeLease()
        let keys = try ReleaseKeyDirectory(deployment, lease: lease)
        for isFresh in [false, true, false] {
            if isFresh { lease.renew(until: NodeLease.now + 60_000) } else { lease.lapse() }
            #expect((keys.generation != nil) == isFresh)
            guard isFresh else {
                #expect(throws: OperationalError.self) { try keys.release(for: id) }
                #expect(throws: OperationalError.self) { try keys.app(at: host.span) }
                continue
            }
            #expect(try keys.release(for: id)?.id == id)
            #expect(try keys.app(at: host.span) != nil)
        }
    }

    @Test(
        "the longest window of schemes whose requests are remembered",
        arguments: [
            ([], 60), (["window=10s"], 10), (["schemes=form-md5,message-signatures"], 300),
            (["schemes=auth-v2,message-signatures"], 60), (["schemes=auth-v1", "window=2h"], 7200),
            (["schemes=sigv4", "presigned=1h"], 300), (["presigned=1h"], 60),
        ])
    func longestWindow(_ row: (settings: [String], seconds: Int)) throws {
        let folder = TemporaryFolder()
        let deployment = try deployment(folder.data)
        _ = try deployment.addApp(#require(AppName("demo")), settings: row.settings, at: 5)
        #expect(try ReleaseKeyDirectory(deployment).longestWindow == row.seconds)
    }

    @Test(
        "the longest life of presigned URLs",
        arguments: [
            ([], 0), (["presigned=1h"], 0), (["schemes=sigv4"], 0),
            (["schemes=sigv4", "presigned=1h"], 3600),
        ])
    func longestLifetime(_ row: (settings: [String], seconds: Int)) throws {
        let folder = TemporaryFolder()
        let deployment = try deployment(folder.data)
        _ = try deployment.addApp(#require(AppName("demo")), settings: row.settings, at: 5)
        #expect(try ReleaseKeyDirectory(deployment).longestLifetime == row.seconds)
    }

    @Test func aStoreThatFailsClosesTheGateUntilItIsBack() throws {
        let folder = TemporaryFolder()
        let app = try #require(AppName("demo"))
        let store = FailingStore(StorePlace.sqlite(path: "\(folder.data)/countersign.db").open())
        let serving = try deployment(folder.data, store: store)
        _ = try serving.addApp(app, settings: [], at: 5)
        _ = try serving.addRelease(draft(app, id: "r_1"), at: 6)
        let keys = try ReleaseKeyDirectory(serving)
        let id = try #require(KeyID("r_1"))

        store.fails = true
        #expect(try keys.release(for: id) != nil, "unchanged, so memory answers")
        serving.generation.advance()
        #expect(throws: OperationalError.self) { try keys.release(for: id) }
        #expect(throws: OperationalError.self) { try keys.release(for: id) }
        store.fails = false
        #expect(try keys.release(for: id) != nil)
    }

    /// A thread that serves requests must not read all apps and releases: it waits for another that does,
    /// once for all requests that wait.
    @Test func withAPoolNoLookupReadsTheStore() async throws {
        let folder = TemporaryFolder()
        let app = try #require(AppName("demo"))
        let store = FailingStore(StorePlace.sqlite(path: "\(folder.data)/countersign.db").open())
        let serving = try deployment(folder.data, store: store)
        _ = try serving.addApp(app, settings: [], at: 5)
        let pool = try WorkPool(WorkPool.Bounds(workers: 1, queue: 100, patience: 60_000), for: .storeReads)
        defer { pool.stop() }
        let keys = try ReleaseKeyDirectory(serving, loadingOn: pool)
        let id = try #require(KeyID("r_1"))
        #expect(store.snapshots.withLock { $0.count } == 1 && !keys.hasChanged)
        _ = try serving.addRelease(draft(app, id: "r_1"), at: 6)
        #expect(keys.hasChanged)
        #expect(try keys.release(for: id) == nil)
        #expect(try keys.policy(of: app) != nil && !keys.explainsRefusals)
        #expect(store.snapshots.withLock { $0.count } == 1, "the lookups read nothing")
        try await withThrowingTaskGroup(of: Void.self) { group in
            for _ in 0..<20 { group.addTask { try await keys.loadIfChanged() } }
            try await group.waitForAll()
        }
        #expect(try keys.release(for: id) != nil && !keys.hasChanged)
        let readers = store.snapshots.withLock { $0 }
        let thread = try await pool.run { UInt(pthread_self()) }
        #expect(readers.count == 2 && readers.last == thread)
        // Fails closed while the store cannot be read, and tries again with the next request.
        store.fails = true
        serving.generation.advance()
        try await keys.loadIfChanged()
        #expect(throws: OperationalError.self) { try keys.release(for: id) }
        #expect(keys.hasChanged && !keys.explainsRefusals)
        store.fails = false
        try await keys.loadIfChanged()
        #expect(try keys.release(for: id) != nil)
    }

    @Test func theStoresOwnRevisionTellsWhatNoCounterDid() throws {
        let folder = TemporaryFolder()
        let serving = try deployment(folder.data)
        let app = try #require(AppName("demo"))
        let id = try #require(KeyID("r_1"))
        _ = try serving.addApp(app, settings: [], at: 5)
        _ = try serving.addRelease(draft(app, id: "r_1"), at: 6)
        let keys = try ReleaseKeyDirectory(serving)
        let before = serving.generation.current
        // Simulates a process that ended between its commit and the increment of the generation.
        let other = StorePlace.sqlite(path: "\(folder.data)/countersign.db").open(
            authenticatingBy: serving.rows)
        let draft = AuditDraft { head in (AuditRow(number: 100, record: [], tag: []), head ?? []) }
        #expect(
            try other.retire(id, with: AppRelease.Retirement(at: 1, updateURL: "u:x"), recording: draft)
                == .yes)
        #expect(serving.generation.current == before)
        #expect(try keys.release(for: id)?.retirement == nil)
        try keys.reconcile()
        #expect(try keys.release(for: id)?.retirement?.at == 1)
    }

    @Test func manyThreadsSeeTheChange() async throws {
        let folder = TemporaryFolder()
        let app = try #require(AppName("demo"))
        let serving = try deployment(folder.data)
        _ = try serving.addApp(app, settings: [], at: 5)
        let keys = try ReleaseKeyDirectory(serving)
        for round in 0..<20 {
            let id = try #require(KeyID("r_\(round)"))
            _ = try serving.addRelease(draft(app, id: "r_\(round)", version: "\(round)"), at: 6)
            let found = try await withThrowingTaskGroup(of: Bool.self) { group in
                for _ in 0..<8 { group.addTask { try keys.release(for: id) != nil } }
                return try await group.reduce(0) { $0 + ($1 ? 1 : 0) }
            }
            #expect(found == 8)
        }
    }
}
