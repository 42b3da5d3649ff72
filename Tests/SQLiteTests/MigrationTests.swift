import CountersignAuthority
import CountersignGate
import CountersignSchemes
import CountersignWire
import Foundation
import StoreContract
import Testing

@testable import CountersignSQL

@Suite struct MigrationTests {
    private func makeFolder() throws -> URL {
        let folder = FileManager.default.temporaryDirectory.appendingPathComponent(
            "countersign-\(UUID().uuidString)")
        try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true)
        return folder
    }

    /// The database of ``makeFirst(at:)`` with all migrations up to `step`, which is not applied.
    private func makeFile(at path: String, before step: String) throws -> Database {
        try makeFirst(at: path)
        let database = try Database(path: path)
        let count = try #require(Migrations.steps.firstIndex(of: step))
        for step in Migrations.steps[1..<count] { try database.execute(step) }
        try database.execute("PRAGMA user_version = \(count)")
        return database
    }

    /// A database as the first layout left it, with an app and a release in it.
    private func makeFirst(at path: String) throws {
        #expect(FileManager.default.createFile(atPath: path, contents: nil))
        let database = try Database(path: path)
        try database.execute(Migrations.steps[0])
        try database.execute(
            """
            PRAGMA application_id = \(Migrations.applicationID);
            PRAGMA user_version = 1;
            INSERT INTO app VALUES ('demo', 12);
            INSERT INTO app_setting VALUES ('demo', 'window', '9s', NULL);
            INSERT INTO release VALUES (1, 'r_1', 'demo', 'ios', '1.0', 'form-md5', x'0102', 20, NULL, NULL);
            UPDATE revision SET number = 7;
            """)
    }

    @Test("sessions of before have no release, and get one when they are renewed")
    func releases() throws {
        let folder = try makeFolder()
        defer { try? FileManager.default.removeItem(at: folder) }
        let path = folder.appendingPathComponent("countersign.db").path
        #expect(FileManager.default.createFile(atPath: path, contents: nil))
        let database = try Database(path: path)
        for step in Migrations.steps.prefix(5) { try database.execute(step) }
        try database.execute(
            """
            PRAGMA application_id = \(Migrations.applicationID);
            PRAGMA user_version = 5;
            INSERT INTO app VALUES ('demo', 12);
            INSERT INTO account (number, app, name, created, state) VALUES (1, 'demo', 'ada', 13, 'active');
            INSERT INTO session (
                change, id, account, app, platform, device_class, device_name, created, used, token_hash,
                token_expires, login_token_hash, token_issued)
            VALUES (1, x'000102030405060708090a0b0c0d0e0f', 1, 'demo', 'ios', 'phone', 'p', 14, 14, x'01', \
            99, x'02', 14);
            UPDATE session_change SET number = 1;
            """)
        let store = SQLStore(path: path)
        try store.prepare()
        let session = try #require(try store.liveSessions(of: 1, newest: 10).first)
        #expect(session.release == nil && session.created == 14)
        #expect(session.opening == .signed, "its token opens nothing alone")
        let release = KeyID("r_1")
        guard
            case .yes(let renewed) = try store.swap(
                session.id, from: session.credentials, to: session.credentials, by: release, at: 20)
        else { throw OperationalError(.failed, message: "not swapped") }
        #expect(renewed.release == release)
    }

    @Test("apps whose old clients have had tokens of ours go on renewing them, unless they said otherwise")
    func renewal() throws {
        let folder = try makeFolder()
        defer { try? FileManager.default.removeItem(at: folder) }
        let path = folder.appendingPathComponent("countersign.db").path
        let database = try makeFile(at: path, before: Migrations.m010)
        try database.execute(
            """
            INSERT INTO app VALUES ('ours', 12), ('silent', 12), ('theirs', 12);
            INSERT INTO app_setting VALUES
                ('ours', 'legacy-session', 'authority', NULL),
                ('silent', 'legacy-session', 'authority', NULL),
                ('silent', 'legacy-renewal', 'off', NULL), ('theirs', 'legacy-session', 'upstream', NULL);
            """)
        try SQLStore(path: path).prepare()
        let query = "SELECT app, text FROM app_setting WHERE name = 'legacy-renewal' ORDER BY app"
        let rows = try database.rows(query) {
            "\($0.text(0)): \($0.text(1))"
        }
        #expect(rows == ["ours: on", "silent: off"])
    }

    @Test("apps keep the defaults that they were made under")
    func defaults() throws {
        let folder = try makeFolder()
        defer { try? FileManager.default.removeItem(at: folder) }
        let path = folder.appendingPathComponent("countersign.db").path
        let database = try makeFile(at: path, before: Migrations.m016)
        try database.execute(
            """
            INSERT INTO app VALUES ('old', 12), ('older', 12), ('ruled', 12);
            INSERT INTO app_setting VALUES
                ('older', 'routes', '/ session', NULL), ('ruled', 'routes', '/ session', NULL);
            """)
        let store = SQLStore(path: path)
        try store.prepare()
        func policy(of name: String) throws -> Policy {
            let name = try #require(AppName(name))
            return try #require(try store.app(name)).policy()
        }
        #expect(try policy(of: "old").routes.rules.map(\.level) == [.signed])
        #expect(try policy(of: "older").routes.rules.map(\.level) == [.session])
        #expect(try policy(of: "ruled").routes.rules.map(\.level) == [.session])
        #expect(try ["old", "older", "ruled"].map { try policy(of: $0).passwordMinimum } == [1, 1, 1])
        #expect(Policy().passwordMinimum == 8)
    }

    @Test("what is kept of keyed requests is added up where it was not yet")
    func keyedRequests() throws {
        let folder = try makeFolder()
        defer { try? FileManager.default.removeItem(at: folder) }
        let path = folder.appendingPathComponent("countersign.db").path
        try makeFirst(at: path)
        let database = try Database(path: path)
        for step in Migrations.steps[1..<6] { try database.execute(step) }
        try database.execute(
            """
            PRAGMA user_version = 6;
            INSERT INTO idempotent_request VALUES
                ('account 1', x'01', x'02', 7, 200, x'', x'0000000000'), ('account 1', x'02', x'02', 7, \
            NULL, NULL, NULL),
                ('account 2', x'01', x'02', 7, NULL, NULL, NULL), ('release r_1', x'01', x'02', 7, 204, \
            x'00', x'');
            """)
        try SQLStore(path: path).prepare()
        let amounts = try database.rows("SELECT owner, keys, bytes FROM idempotent_use ORDER BY owner") {
            "\($0.text(0)): \($0.integer(1)), \($0.integer(2))"
        }
        #expect(
            amounts == [
                "account: 3, 5", "account 1: 2, 5", "account 2: 1, 0", "release: 1, 1", "release r_1: 1, 1",
            ])
        #expect(try SQLStore(path: path).forgetRequests(before: 8, limit: 10) == 4)
        let left = try database.rows("SELECT owner, keys, bytes FROM idempotent_use ORDER BY owner") {
            "\($0.text(0)): \($0.integer(1)), \($0.integer(2))"
        }
        #expect(left == ["account: 0, 0", "release: 0, 0"])
    }

    @Test("each earlier layout opens, and keeps what it holds")
    func first() throws {
        let folder = try makeFolder()
        defer { try? FileManager.default.removeItem(at: folder) }
        let path = folder.appendingPathComponent("countersign.db").path
        try makeFirst(at: path)

        for _ in 0..<2 { try SQLStore(path: path).prepare() }
        let store = SQLStore(path: path)
        #expect(try Database(path: path).integer("PRAGMA user_version") == Int64(Migrations.steps.count))
        #expect(try store.revision() == 7)
        let release = try #require(try store.releases(of: nil).first)
        #expect(
            release.id.description == "r_1" && release.sealedSecret == [1, 2] && release.scheme == .formMD5)
        #expect(release.sealedNextSecret == nil && release.settings.isEmpty)
        #expect(
            try store.apps().map(\.settings) == [
                ["window": .text("9s"), "routes": .text("/ signed"), "password-min": .text("1")]
            ])
        #expect(try store.insertNext([1, 3], of: release.id, recording: .counting) == .yes)
        #expect(try store.change(release.id, applying: [("debug", "on")], recording: .counting) == .yes)
        #expect(try store.meter(since: 0).isEmpty)
    }
}
