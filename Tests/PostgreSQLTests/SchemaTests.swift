import CountersignAuthority
import CountersignFaults
import CountersignWire
import DatabaseFixture
import Testing
import Waiting

@testable import CountersignSQL
import CountersignServer

/// The schema that the migrations make is the one that is expected, and another one is refused.
@Suite(.enabled(if: TestDatabases.isThere, "no PostgreSQL server can be started"))
struct SchemaTests {
    private func made() throws -> (PostgreSQLAddress, Database) {
        let address = try #require(TestDatabases.shared).make()
        try StorePlace.postgreSQL(address).open().prepare()
        return (address, Database(try PostgreSQLConnection(to: address)))
    }

    @Test(
        "the digests of each layout are those of its migrations",
        arguments: ["PostgreSQLSchema.expected", "LaterLayouts.expanded", "LaterLayouts.contracted"])
    func areAsExpected(_ name: String) throws {
        let layouts = [
            "LaterLayouts.expanded": LaterLayouts.expanded,
            "LaterLayouts.contracted": LaterLayouts.contracted,
        ]
        let layout = layouts[name] ?? .current
        let address = try #require(TestDatabases.shared).make()
        let database = Database(try PostgreSQLConnection(to: address))
        try database.execute("CREATE SCHEMA countersign")
        for migration in layout.migrations { try database.execute(migration.postgreSQL) }
        let digests = try PostgreSQLSchema.digests(in: database)
        let others = digests.filter { layout.digests[$0.key] != $0.value }.sorted { $0.key < $1.key }
        let lines = others.map { "        \"\($0.key)\": \"\($0.value)\"," }
        #expect(others.isEmpty, "\(name) should have\n\(lines.joined(separator: "\n"))")
        #expect(digests.count == layout.digests.count)
    }

    @Test(
        "what is not as the migrations make it is refused",
        arguments: [
            "DROP INDEX countersign.session_of_account",
            "ALTER TABLE countersign.session DISABLE TRIGGER row_update",
            "ALTER TABLE countersign.session ADD COLUMN more bigint",
            "ALTER TABLE countersign.session ENABLE ROW LEVEL SECURITY",
            "CREATE RULE nothing AS ON UPDATE TO countersign.session DO INSTEAD NOTHING",
            "CREATE TRIGGER more BEFORE UPDATE ON countersign.account FOR EACH ROW "
                + "EXECUTE FUNCTION countersign.refuse_change()",
            "CREATE OR REPLACE FUNCTION countersign.refuse_change() RETURNS trigger LANGUAGE plpgsql AS "
                + "'BEGIN RETURN NEW; END'",
            "CREATE FUNCTION countersign.substr(bytea, int, int) RETURNS bytea LANGUAGE sql AS 'SELECT $1'",
            "CREATE TABLE countersign.heir () INHERITS (countersign.account)",
        ])
    func isCompared(_ sql: String) throws {
        let (address, database) = try made()
        try database.execute(sql)
        let fault = #expect(throws: OperationalError.self) {
            try StorePlace.postgreSQL(address).open().revision()
        }
        #expect(fault?.kind == .failed)
    }

    @Test func otherTablesMayBeThere() throws {
        let (address, database) = try made()
        try database.execute("CREATE TABLE countersign.more (number bigint)")
        #expect(try StorePlace.postgreSQL(address).open().revision() == 0)
    }

    /// Nothing else says on a new connection that rows have tags.
    @Test("a store whose table of the level was replaced by a view is not read")
    func layoutReplaced() async throws {
        let address = try #require(TestDatabases.shared).make()
        let store = StorePlace.postgreSQL(address).open()
        defer { store.close() }
        try store.prepare()
        _ = try store.apps()
        let other = Database(try PostgreSQLConnection(to: address))
        try other.execute(
            """
            ALTER TABLE countersign.layout RENAME TO former;
            CREATE VIEW countersign.layout AS SELECT * FROM countersign.former;
            SELECT pg_terminate_backend(pid) FROM pg_stat_activity
                WHERE datname = current_database() AND pid <> pg_backend_pid();
            """)
        // The first read finds that the connection is closed; a new one is opened a moment later.
        var result = ""
        await until("a new connection") {
            do throws(OperationalError) {
                result = "\(try store.apps().count) read"
            } catch {
                result = error.message
            }
            return !result.contains("closed the connection")
        }
        #expect(result.contains("`layout` was removed or replaced"), "\(result)")
    }
}
