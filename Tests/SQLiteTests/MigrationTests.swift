import CountersignAuthority
import CountersignSchemes
import CountersignWire
import Foundation
import Testing

@testable import CountersignSQLite

@Suite struct MigrationTests {
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

    @Test("each earlier layout opens, and keeps what it holds")
    func first() throws {
        let folder = FileManager.default.temporaryDirectory.appendingPathComponent("countersign-\(UUID().uuidString)")
        try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true)
        defer { try? FileManager.default.removeItem(at: folder) }
        let path = folder.appendingPathComponent("countersign.db").path
        try makeFirst(at: path)

        for _ in 0..<2 { try SQLiteStore(path: path).prepare() }
        let store = SQLiteStore(path: path)
        #expect(try Database(path: path).integer("PRAGMA user_version") == Int64(Migrations.steps.count))
        #expect(try store.revision() == 7)
        let release = try #require(try store.releases(of: nil).first)
        #expect(release.id.description == "r_1" && release.sealedSecret == [1, 2] && release.scheme == .formMD5)
        #expect(release.sealedNextSecret == nil && release.settings.isEmpty)
        #expect(try store.apps().map(\.settings) == [["window": .text("9s")]])
        #expect(try store.insertNext([3], of: release.id) == .yes)
        #expect(try store.change(release.id, [("debug", "on")]) == .yes)
        #expect(try store.meter(since: 0).isEmpty)
    }
}
