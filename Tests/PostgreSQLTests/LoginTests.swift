import CountersignAuthority
import CountersignWire
import DatabaseFixture
import Foundation
import Testing

@testable import CountersignSQL

/// Pending logins that nodes share: exactly one of several nodes takes each login, and their number is
/// bounded.
@Suite(.enabled(if: TestDatabases.isThere, "no PostgreSQL server can be started"))
struct LoginTests {
    private let address: PostgreSQLAddress
    private let logins: PostgreSQLLogins
    private let database: Database

    init() throws {
        address = try #require(TestDatabases.shared).make()
        try StorePlace.postgreSQL(address).open().prepare()
        logins = PostgreSQLLogins(address, rows: nil)
        database = Database(try PostgreSQLConnection(to: address))
    }

    private func add(
        _ number: Int, of holder: UInt8 = 1, milliseconds: Int64 = 60_000, capacity: Int = 100
    ) throws {
        let row = PendingLoginRow(
            id: [UInt8(number >> 8), UInt8(number & 255)], holder: [holder], sealed: [7, UInt8(number & 255)])
        try logins.addPendingLogin(row, milliseconds: milliseconds, capacity: capacity)
    }

    private func take(_ number: Int) throws -> [UInt8]? {
        try logins.takePendingLogin([UInt8(number >> 8), UInt8(number & 255)])
    }

    private var counted: Int64? {
        get throws { try database.integer("SELECT number FROM pending_login_count") }
    }

    @Test func isTakenOnce() throws {
        try add(1)
        #expect(try take(1) == [7, 1])
        #expect(try take(1) == nil)
        #expect(try take(2) == nil)
        #expect(try counted == 0)
    }

    @Test func oneOfManyTakesIt() async throws {
        let nodes = (0..<6).map { _ in PostgreSQLLogins(address, rows: nil) }
        for round in 0..<30 {
            try add(round, milliseconds: 3_600_000)
            let found = try await withThrowingTaskGroup(of: [UInt8]?.self) { group in
                for node in nodes {
                    group.addTask { try node.takePendingLogin([0, UInt8(round)]) }
                }
                return try await group.reduce(into: 0) { if $1 != nil { $0 += 1 } }
            }
            #expect(found == 1)
        }
        #expect(try counted == 0)
    }

    @Test func expiredOnesGo() throws {
        try add(1, milliseconds: 0)
        #expect(try take(1) == nil)
        for number in 2..<5 { try add(number, milliseconds: 0) }
        try add(9)
        try logins.expirePendingLogins()
        #expect(try counted == 1)
        #expect(try take(9) != nil)
    }

    @Test("when the table is full, a holder's logins displace its own")
    func isBounded() throws {
        for number in 0..<4 { try add(number, of: UInt8(10 + number), capacity: 20) }
        for number in 100..<200 { try add(number, of: 1, capacity: 20) }
        #expect(try database.integer("SELECT count(*) FROM pending_login") ?? 99 <= 20)
        #expect(try counted == database.integer("SELECT count(*) FROM pending_login"))
        for number in 0..<4 { #expect(try take(number) != nil) }
        #expect(try take(199) != nil)
        #expect(try take(100) == nil)
    }

    @Test("the bound holds, and nothing is stuck, while logins are added, taken and expired at once")
    func atOnce() async throws {
        try await withThrowingTaskGroup(of: Void.self) { group in
            for worker in 0..<8 {
                group.addTask { [address] in
                    let logins = PostgreSQLLogins(address, rows: nil)
                    for number in 0..<120 {
                        let id = [UInt8(worker), UInt8(number)]
                        try logins.addPendingLogin(
                            PendingLoginRow(id: id, holder: [UInt8(worker % 3)], sealed: [1]),
                            milliseconds: number.isMultiple(of: 5) ? 0 : 3_600_000, capacity: 24)
                        if number.isMultiple(of: 3) { _ = try logins.takePendingLogin(id) }
                        if number.isMultiple(of: 7) { try logins.expirePendingLogins() }
                    }
                }
            }
            try await group.waitForAll()
        }
        let rows = try database.integer("SELECT count(*) FROM pending_login")
        #expect(try counted == rows)
        #expect(rows ?? 99 <= 24)
    }

    @Test("the server's crash forgets them: the tables are not logged")
    func areNotLogged() throws {
        let logged = try database.integer(
            """
            SELECT count(*) FROM pg_class WHERE relname IN ('pending_login', 'pending_login_count')
                AND relpersistence <> 'u'
            """)
        #expect(logged == 0)
    }
}
