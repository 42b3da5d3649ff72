import CSQLite
import CountersignAuthority
import CountersignGate
import CountersignWire
import Foundation
import ScriptedClock
import StoreContract
import Testing

@testable import CountersignSQL

/// What a server asks while requests wait is found by an index, never by reading a table through.
@Suite struct IndexTests {
    @Test func nothingIsReadThrough() throws {
        let folder = FileManager.default.temporaryDirectory.appendingPathComponent(
            "countersign-\(UUID().uuidString)")
        try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true)
        defer { try? FileManager.default.removeItem(at: folder) }
        let path = folder.appendingPathComponent("countersign.db").path
        try SQLStore(path: path).prepare()
        let database = try Database(path: path)
        let store = SQLStore(within: database)
        try database.transaction { () throws(OperationalError) in
            do {
                let contract = StoreContract(store)
                _ = try store.insert(App(name: #require(AppName("shop")), created: 1), recording: .counting)
                let accounts = try (0..<50).map { try contract.added(contract.legacyDraft("account-\($0)")) }
                for (number, account) in accounts.enumerated() {
                    let session = try StoreContract.session(number, of: account, at: Int64(number))
                    _ = try store.open(session, proving: nil, slots: .unlimited, at: 1)
                    _ = try store.begin(
                        IdempotentRequest(
                            scope: .account(Int64(number)), key: [], digest: [], begun: Int64(number)),
                        within: .init())
                    if number < 20 {
                        _ = try store.end(
                            .one(session.id), with: SessionTermination(.revoked, at: 9), recording: nil)
                    }
                }
                #expect(IndexTests.readThrough(database) == [:])
                try IndexTests.ask(store, accounts[40])
            } catch let fault as OperationalError {
                throw fault
            } catch {
                throw OperationalError(.failed, message: "\(error)")
            }
        }
        #expect(IndexTests.readThrough(database) == [:])
        // That it can be seen at all: this one has no index.
        _ = try database.integer("SELECT count(*) FROM account WHERE created = ?", binding: .integer(7))
        #expect(IndexTests.readThrough(database).count == 1)
    }

    private static func ask(_ store: SQLStore, _ account: Account) throws {
        let session = try #require(try store.sessions(of: account.number).first)
        #expect(try store.liveSessions(of: account.number, newest: 3) == [session])
        #expect(try store.liveSessions(of: account.app, usedSince: 0).map(\.count) == [30])
        #expect(try store.account(account.name, of: account.app) == account)
        #expect(try store.account(account.number) == account)
        #expect(try store.accounts(of: account.app, after: account.number, limit: 3).count == 3)
        #expect(try store.session(session.id) == session)
        #expect(try store.sessions(of: account.app, limit: 3).count == 3)
        #expect(try store.sessions(changedAfter: 60, limit: 3).count == 3)
        #expect(
            try store.swap(session.id, from: session.credentials, to: session.credentials, at: 40) != .missing
        )
        #expect(
            try store.forgetSessions(of: account.app, usedBefore: 25, createdBefore: 25, limit: 3).count == 3)
        #expect(
            try store.end(
                .oneOf(session.id, account: account.number), with: SessionTermination(.revoked, at: 9),
                recording: nil)
                != [])
        #expect(try store.forgetSessions(endedBefore: 10, limit: 2).count == 2)
        #expect(
            try store.change(account.number, if: .anything, applying: .lock, at: 9, recording: .counting)
                == .yes(ended: []))
        let device = KnownDevice(signingKey: [UInt8](repeating: 40, count: 65), lastSeen: 1)
        #expect(try store.knownDevice(device.id, of: account.number) != nil)
        #expect(try store.knownDevices(of: account.number).count == 1)
        #expect(try store.forgetRequests(before: 5, limit: 2) == 2)
        let request = IdempotentRequest(scope: .account(30), key: [], digest: [], begun: 30)
        #expect(try store.begin(request, within: .init()) == .unfinished)
        try store.finish(
            request, with: StoredAnswer(status: 200, fields: [], body: []), within: .init())
        try store.abandon(request)
    }

    /// Statements that stepped through a table, with the number of steps. Tables of one row are no tables
    /// here.
    private static func readThrough(_ database: Database) -> [String: Int32] {
        var found: [String: Int32] = [:]
        var statement = sqlite3_next_stmt(database.sqlite?.handle, nil)
        while let current = statement {
            let steps = sqlite3_stmt_status(current, SQLITE_STMTSTATUS_FULLSCAN_STEP, 0)
            let sql = sqlite3_sql(current).map { String(cString: $0) } ?? ""
            if steps > 0, !sql.contains("session_change"), !sql.contains("revision") { found[sql] = steps }
            statement = sqlite3_next_stmt(database.sqlite?.handle, current)
        }
        return found
    }
}
