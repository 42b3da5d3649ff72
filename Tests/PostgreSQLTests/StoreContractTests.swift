import CountersignAuthority
import CountersignMemory
import CountersignSQL
import CountersignSeal
import CountersignWire
import DatabaseFixture
import StoreContract
import Testing

/// PostgreSQL fulfils the contract of the port, over one store, over many and within a transaction; with tags
/// and without.
@Suite(.enabled(if: TestDatabases.isThere, "no PostgreSQL server can be started"))
struct StoreContractTests {
    /// Milliseconds for a statement, far more than any takes: one that is slower hangs.
    private static let hangs = 60_000

    private static func withStore(
        _ body: (_ store: StoreImplementation, _ name: String) throws -> Void
    ) throws {
        let address = try #require(TestDatabases.shared).make()
        let store = StoreImplementation { _ in
            StorePlace.postgreSQL(address).open(limitingStatementsTo: hangs)
        }
        try body(store, address.database)
    }

    @Test func contractAcrossOpenings() throws { try Self.withStore { try $0.holdsAcrossOpenings($1) } }
    @Test func contractOnOneStore() throws { try Self.withStore { try $0.holdsOnOneStore($1) } }
    @Test func contractWithinATransaction() throws {
        try Self.withStore { try $0.holdsWithinATransaction($1) }
    }

    @Test(arguments: StoreImplementation.Bound.allCases)
    func keyedRequestsAreBounded(_ bound: StoreImplementation.Bound) throws {
        try Self.withStore { try $0.boundsKeyedRequests($1, by: bound) }
    }

    @Test(
        "every change keeps the tags and digests right, over one store and over many",
        arguments: [true, false])
    func tagsAreRight(_ isShared: Bool) throws {
        let address = try #require(TestDatabases.shared).make()
        let rows = try #require(
            RowAuthenticator(key: Secret(copying: [UInt8](repeating: 7, count: 32).span)))
        let place = StorePlace.postgreSQL(address)
        let store = place.open(authenticatingBy: rows, limitingStatementsTo: Self.hangs)
        let contract = StoreContract(
            opening: {
                isShared ? store : place.open(authenticatingBy: rows, limitingStatementsTo: Self.hangs)
            },
            preparing: { opened in
                // Digests begin when the contract has made the store.
                if try opened.countRows() == 0 { _ = try? opened.tagAllRows() }
            })
        try contract.holds()
        #expect(try store.verifyRows().findings.isEmpty)
        try contract.races()
        let found = try store.verifyRows()
        #expect(found.findings.isEmpty && found.rows > 100)
        #expect(try found.rows == store.countRows())
    }
}
