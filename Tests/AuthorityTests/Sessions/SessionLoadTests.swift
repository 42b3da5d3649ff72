import CSQLite
import CountersignAuthority
import CountersignSQL
import CountersignWire
import Foundation
import Testing

/// A server that starts on a damaged store has no sessions, whether its reader or the check of the pages
/// comes to the damaged page first.
@Suite struct SessionLoadTests {
    /// What a server does at its start.
    private func load(_ scene: SessionScene) throws(OperationalError) -> SessionDirectory {
        let check = StorePageCheck()
        let place = StorePlace.sqlite(path: scene.deployment.folder.database)
        do throws(OperationalError) {
            let deployment = try AuthorityTests.deployment(
                scene.folder.data, store: place.open(inspecting: .concurrent(check)))
            defer { deployment.store.close() }
            let reader = place.open(inspecting: .header, authenticatingBy: deployment.rows)
            return try SessionDirectory.load(
                deployment, keys: ReleaseKeyDirectory(deployment), reader: reader, writer: scene.writer,
                beside: check)
        } catch {
            try check.requireSound()
            throw error
        }
    }

    @Test("damage of any page refuses the start with one message")
    func damage() async throws {
        let scene = try SessionScene(["slots=unlimited"])
        let account = try scene.addAccount("alice")
        for _ in 0..<40 { _ = try await scene.signIn(account) }
        #expect(try load(scene).counts.all == 40)
        let path = scene.deployment.folder.database
        var database: OpaquePointer?
        try #require(sqlite3_open(path, &database) == SQLITE_OK)
        try #require(
            sqlite3_wal_checkpoint_v2(database, nil, SQLITE_CHECKPOINT_TRUNCATE, nil, nil) == SQLITE_OK)
        sqlite3_close(database)
        let good = try #require(FileManager.default.contents(atPath: path))
        defer { _ = FileManager.default.createFile(atPath: path, contents: good) }
        for page in 1..<good.count / 4_096 {
            var bad = good
            bad.replaceSubrange(
                page * 4_096..<page * 4_096 + 64, with: Data(repeating: 0xA5, count: 64))
            // Another file, so that the scene's own connections keep theirs.
            try bad.write(to: URL(fileURLWithPath: path), options: .atomic)
            let fault = #expect(throws: OperationalError.self, "page \(page)") { try load(scene) }
            #expect(
                fault?.message == "\(path): not a database or damaged; restore a backup", "page \(page)")
        }
    }
}
