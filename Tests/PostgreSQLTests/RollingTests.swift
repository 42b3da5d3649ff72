import CountersignAuthority
import CountersignFaults
import CountersignGate
import CountersignMemory
import CountersignSchemes
import CountersignSeal
import CountersignThreads
import CountersignWire
import DatabaseFixture
import StoreContract
import Testing
import Waiting

@testable import CountersignSQL
import CountersignServer

/// A build goes on with the schema of a later one if that one says so in a record that only the deployment's
/// key makes, and no other build's schema is used; a migration does not take the schema away from live nodes.
@Suite(.enabled(if: TestDatabases.isThere, "no PostgreSQL server can be started"))
struct RollingTests {
    private let address: PostgreSQLAddress
    private let rows: RowAuthenticator
    private let level = StoreLayout.current.level

    init() throws {
        address = try #require(TestDatabases.shared).make()
        rows = try #require(
            RowAuthenticator(key: Secret(copying: [UInt8](repeating: 7, count: 32).span)))
        let store = opened(.current)
        try store.prepare()
        _ = try store.tagAllRows()
        _ = try store.insert(App(name: try name("first"), created: 1), recording: .counting)
    }

    private func name(_ text: String) throws -> AppName { try #require(AppName(text)) }

    private func opened(_ layout: StoreLayout) -> any Store {
        StorePlace.postgreSQL(address).open(authenticatingBy: rows, layout: layout)
    }

    /// A program that has no key.
    private func other() throws -> Database { Database(try PostgreSQLConnection(to: address)) }

    private func node(_ id: String, of layout: StoreLayout) throws -> any NodeChannel {
        let channel = try #require(StorePlace.postgreSQL(address).openChannel(layout: layout))
        _ = try channel.renew(Node(id: id, name: "node \(id)", replayGuard: "one", lease: 60_000))
        return channel
    }

    @Test func anEarlierBuildGoesOn() throws {
        let running = opened(.current)
        _ = try running.apps()
        let sealed = try #require(try StoreLayout.sealedRecord(in: other()))
        #expect(rows.openSchemaRecord(sealed) == StoreLayout.current.record)
        let step = SchemaPlan.Step(
            level: level + 1, name: "planted expansion", kind: .expanding(oldestLevel: level))
        #expect(
            try opened(LaterLayouts.expanded).schemaPlan()
                == SchemaPlan(level: level, target: level + 1, pending: [step]))
        let later = opened(LaterLayouts.expanded)
        let outcome = try later.prepare(consenting: .expanding, verifyingBy: rows)
        #expect(outcome.done.map(\.name) == ["planted expansion"])
        #expect(try other().integer("SELECT number FROM planted") == 1)
        // One that was running, one that starts, and the later one.
        let starting = opened(.current)
        #expect(try starting.prepare(consenting: .expanding, verifyingBy: rows).done.isEmpty)
        for (place, store) in [running, starting, later].enumerated() {
            _ = try store.insert(App(name: try name("app\(place)"), created: 1), recording: .counting)
            try store.verifySchema()
            #expect(try store.apps().count == place + 2)
            #expect(try store.verifyRows().findings.isEmpty)
        }
        // It compares the catalogue as the later build does.
        try other().execute("ALTER TABLE planted ADD COLUMN more bigint")
        let fault = #expect(throws: OperationalError.self) { try opened(.current).apps() }
        #expect(fault?.message.contains("planted: the columns") == true)
        #expect(try running.verifyRows().findings.contains { $0.text.contains("planted") })
        #expect(throws: OperationalError.self) { try running.verifySchema() }
    }

    @Test(
        "what another program says of the level is not believed",
        arguments: [
            ("UPDATE layout SET record = NULL", "without a record"),
            ("UPDATE layout SET record = substr(record, 1, 40)", "not authentic"),
            ("UPDATE layout SET number = number + 1; UPDATE writing SET level = level + 1", "not authentic"),
            (
                "UPDATE layout SET record = (SELECT value FROM row_digest WHERE name = 'session')",
                "not authentic"
            ),
            ("UPDATE layout SET record = decode('OLD', 'escape')", "not authentic"),
        ])
    func isNotBelieved(_ row: (sql: String, text: String)) throws {
        // The record of the level before is authentic, and of another level.
        let before = try #require(try StoreLayout.sealedRecord(in: other()))
        let running = opened(.current)
        _ = try running.apps()
        _ = try opened(LaterLayouts.expanded).prepare(consenting: .expanding, verifyingBy: rows)
        let sql = row.sql.replacing("decode('OLD', 'escape')", with: "'\\x\(Hex.encode(before.span))'")
        try other().execute(sql)
        for body: () throws -> Void in [
            { _ = try opened(.current).apps() }, { try running.verifySchema() },
            { _ = try opened(.current).prepare(consenting: .all, verifyingBy: rows) },
        ] {
            let fault = #expect(throws: OperationalError.self) { try body() }
            #expect(fault?.message.contains(row.text) == true, "\(fault?.message ?? "")")
        }
    }

    /// A writer that was stopped while its build's level was taken away.
    @Test func anEarlierBuildIsRefused() throws {
        let writer = opened(.current)
        _ = try writer.apps()
        let reader = opened(.current)
        _ = try reader.apps()
        _ = try opened(LaterLayouts.contracted).prepare(consenting: .all, verifyingBy: rows)
        for body: () throws -> Void in [
            { _ = try writer.insert(App(name: try name("late"), created: 1), recording: .counting) },
            { try reader.verifySchema() }, { _ = try opened(.current).apps() },
            { _ = try opened(.current).prepare(consenting: .all, verifyingBy: rows) },
            { _ = try opened(LaterLayouts.expanded).prepare(consenting: .all, verifyingBy: rows) },
        ] {
            let fault = #expect(throws: OperationalError.self) { try body() }
            let text = fault?.message ?? ""
            #expect(text.contains("builds of level \(level + 2)"), "\(text)")
        }
        #expect(try opened(LaterLayouts.contracted).apps().count == 1)
    }

    @Test func aContractionIsAskedForAndWaitsForNodes() throws {
        let later = opened(LaterLayouts.contracted)
        let unasked = #expect(throws: OperationalError.self) {
            try later.prepare(consenting: .expanding, verifyingBy: rows)
        }
        #expect(unasked?.message.contains("countersign migrate") == true)
        let (earlier, own) = (try node("a", of: .current), try node("b", of: LaterLayouts.contracted))
        #expect(try later.schemaPlan().hindering.map(\.name) == ["node a"])
        let hindered = #expect(throws: OperationalError.self) {
            try later.prepare(consenting: .all, verifyingBy: rows)
        }
        #expect(hindered?.message.contains("node a (level \(level))") == true, "\(hindered?.message ?? "")")
        #expect(hindered?.message.contains("node b") == false)
        #expect(try later.schemaPlan().level == level)
        // An expansion does not wait for it.
        _ = try opened(LaterLayouts.expanded).prepare(consenting: .expanding, verifyingBy: rows)
        #expect(try later.schemaPlan().hindering.map(\.name) == ["node a"])
        try earlier.remove(Node(id: "a", name: "", replayGuard: "", lease: 1))
        #expect(try later.prepare(consenting: .all, verifyingBy: rows).done.count == 1)
        #expect(try own.look(as: Node(id: "b", name: "", replayGuard: "", lease: 1)).level == level + 2)
    }

    /// A reader that goes on for long keeps the migration waiting, and not those behind it.
    @Test func aMigrationDoesNotWaitForLong() throws {
        let reader = try other()
        try reader.execute("BEGIN; SELECT count(*) FROM session")
        let later = opened(LaterLayouts.expanded)
        let rows = rows
        let done = Locked(false)
        let thread = try WorkerThreads(purpose: "to migrate") {
            _ = try? later.prepare(consenting: .expanding, verifyingBy: rows)
            done.with { $0 = true }
        }
        let between = opened(.current)
        let watch = try other()
        let waiters = "SELECT count(*) FROM pg_locks WHERE relation IS NOT NULL AND NOT granted"
        for number in 1...3 {
            try blockUntil("the migration waits for the reader") {
                try watch.integer(waiters) ?? 0 > 0
            }
            // The migration has the writing lock, and gives it up.
            _ = try between.insert(App(name: try name("app\(number)"), created: 1), recording: .counting)
        }
        #expect(!done.with { $0 })
        try reader.execute("COMMIT")
        thread.join()
        #expect(try later.schemaPlan().level == level + 1)
        #expect(try between.apps().count == 4)
    }
}
