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
