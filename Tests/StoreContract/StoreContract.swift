import CountersignAuthority
import CountersignGate
import CountersignSchemes
import CountersignWire
import ScriptedClock
import Testing

/// What every store has to do. `make` returns an opening of the same, at first empty, store for each call of
/// the contract: what one opening wrote, the next one reads.
package struct StoreContract {
    let make: () throws -> any Store
    /// For threads that race, each of which has an opening of its own.
    let openAnother: () throws -> any Store

    package init(_ store: any Store) { (make, openAnother) = ({ store }, { store }) }

    /// Over several openings in turn. `prepare` is called with an opening before each use.
    package init(
        opening open: @escaping () throws -> any Store,
        preparing prepare: @escaping (any Store) throws -> Void = { _ in }
    ) {
        let openings = StoreOpenings(open: open)
        func prepared(_ store: any Store) throws -> any Store {
            try prepare(store)
            return store
        }
        make = { try prepared(openings.next()) }
        openAnother = { try prepared(open()) }
    }

    package func holds() throws {
        try beforeItIsMade()
        try make().prepare()
        try make().prepare()
        try apps()
        try releases()
        try rotation()
        try settings()
        try meter()
        try audit()
        try meta()
        try revisions()
        try accounts()
        try sessions()
        try idempotency()
        try adoption()
        try uploadTickets()
        try webhooks()
        try accountCodes()
        try together()
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
        let app = App(
            name: demo, created: 12, settings: ["window": .text("9s"), "legacy-key": .sealed([1, 0, 255])])
        #expect(try make().insert(app, recording: .counting) == .yes)
        #expect(try make().insert(App(name: demo, created: 99), recording: .counting) == .taken)
        #expect(try make().insert(App(name: other, created: 13), recording: .counting) == .yes)
        #expect(try make().app(demo) == app)
        #expect(try make().apps().map(\.name) == [other, demo])
        #expect(try make().app(#require(AppName("absent"))) == nil)

        #expect(
            try make().change(
                demo, applying: [("window", nil), ("debug", .text("on")), ("legacy-key", .sealed([1]))],
                recording: .counting)
                == .yes)
        #expect(try make().app(demo)?.settings == ["debug": .text("on"), "legacy-key": .sealed([1])])
        #expect(
            try make().change(
                #require(AppName("absent")), applying: [("debug", .text("on"))], recording: .counting)
                == .missing)
        // Text is text: nothing in it is taken for SQL.
        #expect(
            try make().change(
                other, applying: [("forward", .text("'); DROP TABLE app; --\0é"))], recording: .counting)
                == .yes)
        #expect(try make().app(other)?.settings == ["forward": .text("'); DROP TABLE app; --\0é")])
    }

    private func release(_ id: String, version: String, scheme: SchemeName = .messageSignatures) throws
        -> Release
    {
        Release(
            id: try #require(KeyID(id)), app: try #require(AppName("demo")),
            platform: try #require(Platform("ios")),
            version: try #require(Version(version)), scheme: scheme, sealedSecret: [1, 2, 3], created: 20)
    }

    private func releases() throws {
        let first = try release("r_1", version: "1.0")
        #expect(try make().insert(first, recording: .counting) == .yes)
        #expect(try make().insert(release("r_1", version: "2.0"), recording: .counting) == .taken)
        #expect(try make().insert(release("r_2", version: "1.0"), recording: .counting) == .taken)
        let legacy = try release("1001", version: "1.0", scheme: .formMD5)
        #expect(try make().insert(legacy, recording: .counting) == .yes)
        #expect(try make().release(first.id) == first)
        #expect(try make().release(#require(KeyID("absent"))) == nil)
        #expect(try make().releases(of: first.app) == [first, legacy])
        #expect(try make().releases(of: AppName("a-first")).isEmpty)
        #expect(try make().releases(of: nil).count == 2)

        let retirement = AppRelease.Retirement(at: .max, updateURL: "https://example.com/é")
        #expect(try make().retire(first.id, with: retirement, recording: .counting) == .yes)
        #expect(try make().release(first.id)?.retirement == retirement)
        #expect(
            try make().retire(#require(KeyID("absent")), with: retirement, recording: .counting) == .missing)
        try stages(of: first)

        var orphan = try release("r_3", version: "3.0")
        orphan.app = try #require(AppName("absent"))
        #expect(throws: OperationalError.self) { try make().insert(orphan, recording: .counting) }
        #expect(try make().releases(of: nil).count == 2)
    }

    /// Leaves `release` retired, in stages.
    private func stages(of release: Release) throws {
        var retirement = AppRelease.Retirement(at: 300, updateURL: "https://example.com/next")
        retirement.warnAt = 100
        retirement.rollout = [.init(since: 0, percent: 10), .init(since: 150, percent: 50)]
        #expect(try make().retire(release.id, with: retirement, recording: .counting) == .yes)
        #expect(try make().release(release.id)?.retirement == retirement)
        #expect(try make().undoRetirement(of: release.id, recording: .counting) == .yes)
        #expect(try make().release(release.id) == release, "nothing of it is left")
        #expect(try make().undoRetirement(of: release.id, recording: .counting) == .missing)
        #expect(try make().undoRetirement(of: #require(KeyID("absent")), recording: .counting) == .missing)
        retirement.readOnlyAt = 200
        retirement.rollout = [.init(since: 7, percent: 0)]
        #expect(try make().retire(release.id, with: retirement, recording: .counting) == .yes)
        #expect(try make().release(release.id)?.retirement == retirement)
    }

    /// Of `r_1` and `1001`, which ``releases()`` has left.
    private func rotation() throws {
        let id = try #require(KeyID("r_1"))
        let before = try #require(try make().release(id))
        #expect(before.sealedNextSecret == nil)
        #expect(try make().removeNext(of: id, recording: .counting) == .missing)
        #expect(try make().promote([1, 7], as: [1, 8], of: id, recording: .counting) == .missing)
        #expect(try make().insertNext([1, 7], of: id, recording: .counting) == .yes)
        #expect(try make().insertNext([1, 6], of: id, recording: .counting) == .taken)
        #expect(try make().insertNext([1, 6], of: #require(KeyID("absent")), recording: .counting) == .taken)
        #expect(try make().release(id)?.sealedNextSecret == [1, 7])
        #expect(
            try make().promote([1, 6], as: [1, 8], of: id, recording: .counting) == .missing,
            "not the one that was read")
        #expect(try make().release(id)?.sealedSecret == before.sealedSecret)
        #expect(try make().promote([1, 7], as: [1, 8], of: id, recording: .counting) == .yes)
        var after = before
        after.sealedSecret = [1, 8]
        #expect(try make().release(id) == after)
        #expect(try make().insertNext([1, 9], of: id, recording: .counting) == .yes)
        #expect(try make().removeNext(of: id, recording: .counting) == .yes)
        #expect(try make().release(id) == after)
        #expect(try make().release(#require(KeyID("1001")))?.sealedNextSecret == nil)
    }

    private func settings() throws {
        let id = try #require(KeyID("r_1"))
        #expect(
            try make().change(id, applying: [("window", "9s"), ("debug", "on")], recording: .counting) == .yes
        )
        #expect(
            try make().change(
                id, applying: [("window", "8s"), ("debug", nil), ("forward", nil)], recording: .counting)
                == .yes)
        #expect(try make().release(id)?.settings == ["window": "8s"])
        #expect(try make().release(#require(KeyID("1001")))?.settings == [:])
        #expect(
            try make().change(#require(KeyID("absent")), applying: [("window", "9s")], recording: .counting)
                == .missing)
        var brought = try release("r_4", version: "4.0")
        brought.settings = ["debug": "on"]
        brought.sealedNextSecret = [1, 4]
        #expect(try make().insert(brought, recording: .counting) == .yes)
        #expect(try make().release(brought.id) == brought)
    }

    private func meter() throws {
        func entry(_ day: Int64, _ outcome: MeterOutcome, _ count: Int64, release: String = "r_1")
            -> MeterEntry
        {
            MeterEntry(
                subject: MeterEntry.Subject(
                    app: "demo", release: release, scheme: "form-md5", outcome: outcome),
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
        try make().forgetMeter(before: .at(4 * 86_400))
        #expect(try make().meter(since: 0) == latest)
    }

    /// A next key's figures are not those of the one before it.
    private func beginsAnew() throws {
        let id = try #require(KeyID("1001"))
        func entry(_ outcome: MeterOutcome, _ count: Int64) -> MeterEntry {
            MeterEntry(
                subject: MeterEntry.Subject(
                    app: "demo", release: "1001", scheme: "form-md5", outcome: outcome),
                day: 3, count: count, lastSeen: 3 * 86_400 + count)
        }
        try make().add([entry(.accepted, 5), entry(.acceptedUnderNextKey, 9), entry(.refused(.stale), 2)])
        #expect(try make().insertNext([1], of: id, recording: .counting) == .yes)
        var sum = entry(.accepted, 14)
        sum.lastSeen = 3 * 86_400 + 9
        let ours = try make().meter(since: 0).filter { $0.subject.release == "1001" }
        #expect(ours == [sum, entry(.refused(.stale), 2)])
        #expect(try make().insertNext([1, 2], of: id, recording: .counting) == .taken)
        #expect(try make().removeNext(of: id, recording: .counting) == .yes)
    }

    /// Of the changes that the tests above have made: each that came about is recorded once, and no other.
    private func audit() throws {
        let rows = try make().auditRows(after: 0, limit: 1_000)
        #expect(rows.map(\.number) == Array(1...Int64(rows.count)) && rows.count == 19)
        #expect(rows.last?.record == Array("record \(rows.count) é\0".utf8) && rows.last?.tag == [0, 255])
        #expect(try make().auditEnd() == (head: [UInt8(rows.count)], last: Int64(rows.count)))
        #expect(try make().auditRows(after: 3, limit: 2) == Array(rows[3..<5]))

        let demo = try #require(AppName("demo"))
        let (before, revision) = (try make().app(demo), try make().revision())
        let failing = AuditDraft { (_) throws(OperationalError) in
            throw OperationalError(.failed, message: "no place")
        }
        #expect(throws: OperationalError.self) {
            try make().change(demo, applying: [("debug", .text("x"))], recording: failing)
        }
        let taken = AuditDraft { _ in (AuditRow(number: 1, record: [], tag: []), []) }
        #expect(throws: OperationalError.self) {
            try make().change(demo, applying: [("debug", .text("x"))], recording: taken)
        }
        #expect(throws: OperationalError.self) { try make().set(.meterBegan, to: [7], recording: failing) }
        #expect(try make().app(demo) == before, "no change without its record")
        #expect(try make().value(of: .meterBegan) == nil)
        #expect(try make().auditRows(after: 0, limit: 1_000) == rows && make().revision() == revision)

        try make().set(.meterBegan, to: [7], recording: .counting)
        #expect(try make().auditEnd().last == Int64(rows.count) + 1)
        #expect(try make().exchange(.meterBegan, from: nil, to: [8], with: [(.answerKey, [9])]) == [7])
        #expect(try make().exchange(.meterBegan, from: [6], to: [8], with: [(.answerKey, [9])]) == [7])
        #expect(try make().value(of: .answerKey) == nil)
        #expect(try make().exchange(.meterBegan, from: [7], to: [8], with: [(.replayFile, [9])]) == [8])
        #expect(try make().value(of: .replayFile) == [9] && make().value(of: .meterBegan) == [8])

        let last = try make().auditEnd().last
        #expect(try make().exchange(.meterBegan, from: [7], to: [6], recording: .counting) == .missing)
        #expect(throws: OperationalError.self) {
            try make().exchange(.meterBegan, from: [8], to: [6], recording: failing)
        }
        #expect(try make().value(of: .meterBegan) == [8] && make().auditEnd().last == last)
        #expect(try make().exchange(.meterBegan, from: [8], to: [6], recording: .counting) == .yes)
        #expect(try make().value(of: .meterBegan) == [6] && make().auditEnd().last == last + 1)
    }

    private func meta() throws {
        let used: [MetaName] = [.auditHead, .meterBegan, .replayFile, .sealSlot]
        for name in MetaName.allCases where !used.contains(name) {
            #expect(try make().value(of: name) == nil)
            #expect(try make().setIfAbsent(name, to: [1]) == [1])
            #expect(try make().setIfAbsent(name, to: [1, 2]) == [1])
            try make().set(name, to: [])
            #expect(try make().value(of: name) == [])
            try make().set(name, to: [1, 3])
            #expect(try make().value(of: name) == [1, 3])
        }
    }

    private func revisions() throws {
        let demo = try #require(AppName("demo"))
        let before = try make().revision()
        #expect(try make().revision() == before)
        #expect(try make().change(demo, applying: [("debug", .text("off"))], recording: .counting) == .yes)
        let after = try make().revision()
        #expect(after > before)
        let snapshot = try make().snapshot()
        #expect(snapshot.revision == after)
        #expect(try snapshot.apps == make().apps())
        #expect(try snapshot.releases == make().releases(of: nil))
    }
}

extension AuditDraft {
    /// Its head is a byte that counts.
    package static let counting = counting(by: nil)

    static func counting(by actor: AuditActor?) -> AuditDraft {
        AuditDraft(by: actor) { head in
            let number = (head?.first ?? 0) + 1
            let row = AuditRow(
                number: Int64(number), record: Array("record \(number) é\0".utf8), tag: [0, 255])
            return (row, [number])
        }
    }
}
