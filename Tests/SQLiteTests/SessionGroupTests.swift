import CountersignAuthority
import CountersignGate
import CountersignWire
import StoreContract
import Testing

@testable import CountersignSQL

/// A row that was put back to an earlier state is authentic. No session opens while one of the account's group
/// was, or is missing, without a check of all rows.
@Suite struct SessionGroupTests {
    struct Attack: Sendable, CustomTestStringConvertible {
        let table: AuthenticatedTable
        /// What the server does; nil for nothing, and the row is deleted.
        var ours: (@Sendable (SQLStore) throws -> Void)?

        var testDescription: String { "\(table.name) \(ours == nil ? "deleted" : "put back")" }
    }

    static let attacks = [
        Attack(table: .account) { store in
            let code = StoredReset(codeHash: [UInt8](repeating: 1, count: 32), made: 1, until: 9)
            let reset = AccountChange.addReset(code)
            _ = try store.change(1, if: .anything, applying: reset, at: 9, recording: .counting)
        },
        Attack(table: .session) { store in
            _ = try store.end(
                .one(StoreContract.id(0)), with: SessionTermination(.revoked, at: 9), recording: nil)
        },
        Attack(table: .knownDevice) { store in
            let device = try #require(try store.knownDevices(of: 1).first).device.id
            #expect(try store.forgetDevice(device, of: 1, recording: .counting))
        },
        Attack(table: .session), Attack(table: .knownDevice),
    ]

    private func opens(_ number: Int, of account: Int64, in store: SQLStore) throws -> Bool {
        let row = try #require(try store.account(account))
        let session = try StoreContract.session(number, of: row)
        do {
            guard case .yes = try StoreContract(store).open(session, .unlimited) else {
                return false
            }
            return true
        } catch is OperationalError { return false }
    }

    @Test("no session opens beside a row that was put back or deleted", arguments: attacks)
    func attack(_ attack: Attack) throws {
        try TaggedStore.make { path, store in
            try TaggedStore.fill(store)
            let table = attack.table
            let account = table.account.map { table.columns[$0] } ?? ""
            let database = try Database(path: path)
            try database.execute(
                "CREATE TEMP TABLE earlier AS SELECT * FROM \(table.name) WHERE \(account) = 1")
            try attack.ours?(store)
            #expect(try opens(10, of: 1, in: store))
            try database.execute("CREATE TEMP TABLE now AS SELECT * FROM \(table.name) WHERE \(account) = 1")
            func set(_ rows: String?) throws {
                try database.execute("DELETE FROM \(table.name) WHERE \(account) = 1")
                if let rows { try database.execute("INSERT INTO \(table.name) SELECT * FROM \(rows)") }
            }
            try set(attack.ours == nil ? nil : "earlier")
            #expect(try !opens(11, of: 1, in: store))
            #expect(throws: OperationalError.self) { try store.verifyGroup(ofAccount: 1, in: [table]) }
            // The next transaction, in which nothing has changed since, and another connection.
            #expect(try !opens(12, of: 1, in: store))
            let other = SQLStore(path: path, rows: TaggedStore.makeRows())
            #expect(try !opens(13, of: 1, in: other))
            // Those of another group go on.
            #expect(try opens(14, of: 2, in: store) && opens(15, of: 2, in: other))
            // Undone, it goes on.
            try set("now")
            #expect(try opens(16, of: 1, in: store) && opens(17, of: 1, in: other))
            #expect(try TaggedStore.findings(path).findings.isEmpty)
        }
    }

    @Test("only the account's own group counts, and only the tables that were named")
    func groups() throws {
        try TaggedStore.make { path, store in
            try TaggedStore.fill(store)
            #expect(try store.countRows() == store.verifyRows().rows)
            let database = try Database(path: path)
            try database.execute("DELETE FROM known_device WHERE account = 1")
            #expect(throws: OperationalError.self) {
                try store.verifyGroup(ofAccount: 1, in: [.session, .knownDevice])
            }
            try store.verifyGroup(ofAccount: 1, in: [.session, .account])
            // 65 is of the same group as 1.
            #expect(throws: OperationalError.self) {
                try store.verifyGroup(ofAccount: 65, in: [.knownDevice])
            }
            try store.verifyGroup(ofAccount: 64, in: [.knownDevice])
        }
    }
}
