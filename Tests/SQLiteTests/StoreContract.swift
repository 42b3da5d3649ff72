import CountersignAuthority
import CountersignGate
import CountersignSchemes
import CountersignWire
import Testing

/// What every store has to do. `make` opens the same, at first empty, store each time it is called: what one opening
/// wrote, the next one reads.
struct StoreContract {
    let make: () throws -> any Store

    func holds() throws {
        try beforeItIsMade()
        try make().prepare()
        try make().prepare()
        try apps()
        try releases()
        try rotation()
        try settings()
        try meter()
        try meta()
        try revisions()
    }

    private func beforeItIsMade() throws {
        let store = try make()
        #expect(try store.apps().isEmpty)
        #expect(try store.value(of: .masterKeyCheck) == nil)
        #expect(try store.snapshot() == StoreSnapshot(revision: 0, apps: [], releases: []))
    }

    private func apps() throws {
        let demo = try #require(AppName("demo"))
        let other = try #require(AppName("a-first"))
        let app = App(name: demo, created: 12, settings: ["window": .text("9s"), "legacy-key": .sealed([0, 255])])
        #expect(try make().insert(app) == .yes)
        #expect(try make().insert(App(name: demo, created: 99)) == .taken)
        #expect(try make().insert(App(name: other, created: 13)) == .yes)
        #expect(try make().app(demo) == app)
        #expect(try make().apps().map(\.name) == [other, demo])
        #expect(try make().app(#require(AppName("absent"))) == nil)

        #expect(
            try make().change(demo, [("window", nil), ("debug", .text("on")), ("legacy-key", .sealed([1]))]) == .yes)
        #expect(try make().app(demo)?.settings == ["debug": .text("on"), "legacy-key": .sealed([1])])
        #expect(try make().change(#require(AppName("absent")), [("debug", .text("on"))]) == .missing)
        // Text is text: nothing in it is taken for SQL.
        #expect(try make().change(other, [("forward", .text("'); DROP TABLE app; --\0é"))]) == .yes)
        #expect(try make().app(other)?.settings == ["forward": .text("'); DROP TABLE app; --\0é")])
    }

    private func release(_ id: String, version: String, scheme: SchemeName = .messageSignatures) throws -> Release {
        Release(
            id: try #require(KeyID(id)), app: try #require(AppName("demo")), platform: try #require(Platform("ios")),
            version: try #require(Version(version)), scheme: scheme, sealedSecret: [1, 2, 3], created: 20)
    }

    private func releases() throws {
        let first = try release("r_1", version: "1.0")
        #expect(try make().insert(first) == .yes)
        #expect(try make().insert(release("r_1", version: "2.0")) == .taken)
        #expect(try make().insert(release("r_2", version: "1.0")) == .taken)
        let legacy = try release("1001", version: "1.0", scheme: .formMD5)
        #expect(try make().insert(legacy) == .yes)
        #expect(try make().release(first.id) == first)
        #expect(try make().release(#require(KeyID("absent"))) == nil)
        #expect(try make().releases(of: first.app) == [first, legacy])
        #expect(try make().releases(of: AppName("a-first")).isEmpty)
        #expect(try make().releases(of: nil).count == 2)

        let retirement = ReleaseKey.Retirement(at: .max, updateURL: "https://example.com/é")
        #expect(try make().retire(first.id, retirement) == .yes)
        #expect(try make().release(first.id)?.retirement == retirement)
        #expect(try make().retire(#require(KeyID("absent")), retirement) == .missing)

        var orphan = try release("r_3", version: "3.0")
        orphan.app = try #require(AppName("absent"))
        #expect(throws: Fault.self) { try make().insert(orphan) }
        #expect(try make().releases(of: nil).count == 2)
    }

    /// Of `r_1` and `1001`, which ``releases()`` has left.
    private func rotation() throws {
        let id = try #require(KeyID("r_1"))
        let before = try #require(try make().release(id))
        #expect(before.sealedNextSecret == nil)
        #expect(try make().removeNext(of: id) == .missing)
        #expect(try make().promote([7], as: [8], of: id) == .missing)
        #expect(try make().insertNext([7], of: id) == .yes)
        #expect(try make().insertNext([6], of: id) == .taken)
        #expect(try make().insertNext([6], of: #require(KeyID("absent"))) == .taken)
        #expect(try make().release(id)?.sealedNextSecret == [7])
        #expect(try make().promote([6], as: [8], of: id) == .missing, "not the one that was read")
        #expect(try make().release(id)?.sealedSecret == before.sealedSecret)
        #expect(try make().promote([7], as: [8], of: id) == .yes)
        var after = before
        after.sealedSecret = [8]
        #expect(try make().release(id) == after)
        #expect(try make().insertNext([9], of: id) == .yes)
        #expect(try make().removeNext(of: id) == .yes)
        #expect(try make().release(id) == after)
        #expect(try make().release(#require(KeyID("1001")))?.sealedNextSecret == nil)
    }

    private func settings() throws {
        let id = try #require(KeyID("r_1"))
        #expect(try make().change(id, [("window", "9s"), ("debug", "on")]) == .yes)
        #expect(try make().change(id, [("window", "8s"), ("debug", nil), ("forward", nil)]) == .yes)
        #expect(try make().release(id)?.settings == ["window": "8s"])
        #expect(try make().release(#require(KeyID("1001")))?.settings == [:])
        #expect(try make().change(#require(KeyID("absent")), [("window", "9s")]) == .missing)
        var brought = try release("r_4", version: "4.0")
        brought.settings = ["debug": "on"]
        brought.sealedNextSecret = [4]
        #expect(try make().insert(brought) == .yes)
        #expect(try make().release(brought.id) == brought)
    }

    private func meter() throws {
        func entry(_ day: Int64, _ outcome: MeterOutcome, _ count: Int64, release: String = "r_1") -> MeterEntry {
            MeterEntry(
                subject: MeterEntry.Subject(app: "demo", release: release, scheme: "form-md5", outcome: outcome),
                day: day, count: count, lastSeen: day * 86_400 + count)
        }
        #expect(try make().meter(since: 0).isEmpty)
        let before = try make().revision()
        try make().add([entry(3, .accepted, 5), entry(3, .refused(.badSignature), 1)])
        try make().add([
            entry(3, .accepted, 2), entry(4, .acceptedUnderNextKey, 9), entry(4, .accepted, 1, release: ""),
        ])
        var sum = entry(3, .accepted, 7)
        sum.lastSeen = 3 * 86_400 + 5
        let latest = [entry(4, .accepted, 1, release: ""), entry(4, .acceptedUnderNextKey, 9)]
        #expect(try make().meter(since: 0) == [sum, entry(3, .refused(.badSignature), 1)] + latest)
        #expect(try make().meter(since: 4) == latest)
        #expect(try make().revision() == before, "no request is judged by it, so nothing is read again")
        try beginsAnew()
        try make().forgetMeter(before: 4)
        #expect(try make().meter(since: 0) == latest)
    }

    /// A next key's figures are not those of the one before it.
    private func beginsAnew() throws {
        let id = try #require(KeyID("1001"))
        func entry(_ outcome: MeterOutcome, _ count: Int64) -> MeterEntry {
            MeterEntry(
                subject: MeterEntry.Subject(app: "demo", release: "1001", scheme: "form-md5", outcome: outcome),
                day: 3, count: count, lastSeen: 3 * 86_400 + count)
        }
        try make().add([entry(.accepted, 5), entry(.acceptedUnderNextKey, 9), entry(.refused(.stale), 2)])
        #expect(try make().insertNext([1], of: id) == .yes)
        var sum = entry(.accepted, 14)
        sum.lastSeen = 3 * 86_400 + 9
        let ours = try make().meter(since: 0).filter { $0.subject.release == "1001" }
        #expect(ours == [sum, entry(.refused(.stale), 2)])
        #expect(try make().insertNext([2], of: id) == .taken)
        #expect(try make().removeNext(of: id) == .yes)
    }

    private func meta() throws {
        for name in MetaName.allCases {
            #expect(try make().value(of: name) == nil)
            #expect(try make().claim(name, [1]) == [1])
            #expect(try make().claim(name, [2]) == [1])
            try make().set(name, to: [])
            #expect(try make().value(of: name) == [])
            try make().set(name, to: [0, 3])
            #expect(try make().value(of: name) == [0, 3])
        }
    }

    private func revisions() throws {
        let demo = try #require(AppName("demo"))
        let before = try make().revision()
        #expect(try make().revision() == before)
        #expect(try make().change(demo, [("debug", .text("off"))]) == .yes)
        let after = try make().revision()
        #expect(after > before)
        let snapshot = try make().snapshot()
        #expect(snapshot.revision == after)
        #expect(try snapshot.apps == make().apps())
        #expect(try snapshot.releases == make().releases(of: nil))
    }
}
