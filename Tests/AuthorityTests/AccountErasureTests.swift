import CSQLite
import CountersignGate
import CountersignSchemes
import CountersignSeal
import CountersignWire
import Foundation
import Testing

@testable import CountersignAuthority

/// An erased account leaves a tombstone and nothing else.
@Suite struct AccountErasureTests {
    private let folder = TemporaryFolder()

    @Test("the name goes from unused parts of the file in the spelling of JSON, too")
    func spelling() throws {
        let deployment = try deployment(folder.data)
        let app = try #require(AppName("demo"))
        _ = try deployment.addApp(app, settings: [], requiring: .signed, at: 5)
        let name = try AccountName(normalizing: "alice \"the\" ü")
        _ = try deployment.addAccount(name, of: app, password: nil, at: 7)
        let path = deployment.folder.database
        var database: OpaquePointer?
        try #require(sqlite3_open(path, &database) == SQLITE_OK)
        let record = #"{"account":\#(JSONValue.string(name.description).text)}"#
        let sql = """
            PRAGMA secure_delete = OFF;
            CREATE TABLE scratch (number INTEGER PRIMARY KEY, record TEXT);
            INSERT INTO scratch VALUES (1, 'first'), (2, '\(record)');
            DELETE FROM scratch WHERE number = 2;
            PRAGMA wal_checkpoint(TRUNCATE)
            """
        try #require(sqlite3_exec(database, sql, nil, nil, nil) == SQLITE_OK)
        sqlite3_close(database)
        let spellings = [Data(name.bytes), Data(#"alice \"the\""#.utf8)]
        func found() throws -> [Bool] {
            let bytes = try Data(contentsOf: URL(fileURLWithPath: path))
            return spellings.map { bytes.range(of: $0) != nil }
        }
        #expect(try found() == [true, true])
        #expect(try deployment.eraseAccount(name, of: app, at: 9).files == .absent)
        #expect(try found() == [false, false])
    }

    /// The backend was told of each of them, and may still refer to it.
    @Test func aFormerUserIDIsForNoOtherAccount() throws {
        let deployment = try deployment(folder.data)
        let app = try #require(AppName("demo"))
        _ = try deployment.addApp(app, settings: [], requiring: .signed, at: 5)
        let (alice, bob) = (try AccountName(normalizing: "alice"), try AccountName(normalizing: "bob"))
        let number = try deployment.addAccount(alice, of: app, password: nil, userID: 72, at: 6).number
        _ = try deployment.addAccount(bob, of: app, password: nil, at: 6)
        func set(_ id: Int64?, of name: AccountName) throws {
            _ = try deployment.setUserID(id, of: name, in: app, at: 7)
        }
        func isRefused(_ id: Int64) throws -> Bool {
            let refused = #expect(throws: OperationalError.self) { try set(id, of: bob) }
            let eve = try AccountName(normalizing: "eve")
            #expect(throws: OperationalError.self) {
                try deployment.addAccount(eve, of: app, password: nil, userID: id, at: 8)
            }
            return refused?.message.contains("another account has, or had, this user id") == true
        }
        try set(74, of: alice)
        #expect(try isRefused(72) && isRefused(74))
        try set(nil, of: alice)
        #expect(try isRefused(72) && isRefused(74))
        // Its own account may have each of them again.
        for id: Int64 in [72, 74, 73] { try set(id, of: alice) }
        #expect(try deployment.store.account(number)?.userID == 73)
        // Nothing tells of an erased account which ids it had.
        let pair = try #require(
            deployment.tombstoneKey().tombstones(ofID: 72, to: nil, of: number, in: app).former)
        #expect(try deployment.store.hasTombstone(pair.idOfAccount, of: app))
        _ = try deployment.eraseAccount(alice, of: app, at: 9)
        #expect(try !deployment.store.hasTombstone(pair.idOfAccount, of: app))
        for id: Int64 in [72, 73, 74] { #expect(try isRefused(id)) }
        try set(75, of: bob)
        #expect(try deployment.verifyAudit().findings == [])
    }

    @Test func anErasedNameStaysTaken() throws {
        let deployment = try deployment(folder.data)
        let (app, other) = (try #require(AppName("demo")), try #require(AppName("other")))
        for app in [app, other] { _ = try deployment.addApp(app, settings: [], requiring: .signed, at: 5) }
        let name = try AccountName(normalizing: "alice")
        let made = try deployment.addAccount(name, of: app, password: nil, userID: 42, at: 6)
        let erased = try deployment.eraseAccount(name, of: app, at: 7)
        #expect(erased == AccountErasure(ended: [], files: .absent))
        #expect(try deployment.eraseAccount(name, of: app, at: 7) == erased, "a second time, for the files")
        let row = try #require(try deployment.store.account(made.number))
        #expect(row.isErased && row.state == .removed && row.userID == nil && row.name != name)
        #expect(throws: OperationalError.self) {
            try deployment.addAccount(name, of: app, password: nil, at: 8)
        }
        #expect(throws: OperationalError.self) { try deployment.eraseAccount(row.name, of: app, at: 8) }
        #expect(throws: OperationalError.self) { try deployment.unlockAccount(row.name, of: app, at: 8) }
        _ = try deployment.addAccount(name, of: other, password: nil, userID: 42, at: 8)
        // The backend knows the erased account by its user id, so no other account of the app gets that id.
        let bob = try AccountName(normalizing: "bob")
        let refused = #expect(throws: OperationalError.self) {
            try deployment.addAccount(bob, of: app, password: nil, userID: 42, at: 8)
        }
        #expect(refused?.message.contains("has, or had, the user id 42") == true)
        _ = try deployment.addAccount(bob, of: app, password: nil, userID: 43, at: 8)
        #expect(throws: OperationalError.self) { try deployment.setUserID(42, of: bob, in: app, at: 8) }
        _ = try deployment.setUserID(44, of: bob, in: app, at: 8)
        #expect(try deployment.verifyAudit().findings == [])
        func tombstones(of app: AppName, in deployment: Deployment) throws -> AccountTombstones {
            try deployment.tombstones(of: name, userID: 42, in: app)
        }
        let own = try tombstones(of: app, in: deployment)
        let others = try tombstones(of: other, in: deployment)
        #expect(own.name != others.name && own.name != own.userID)
        #expect(own.userID != others.userID)
        // The tombstone needs the key: the same name has another one elsewhere.
        let elsewhere = TemporaryFolder()
        let second = try AuthorityTests.deployment(elsewhere.data)
        let foreign = try tombstones(of: app, in: second)
        #expect(foreign.name != own.name && foreign.userID != own.userID)
    }
}
