import CountersignAuthority
import CountersignSQL
import CountersignSeal
import CountersignWire
import Foundation
import Testing

@testable import CountersignServer

/// A backup whose store is of a later level of the schema is refused, and nothing is written. Other backups:
/// Tests/Interop/test_backup.py.
@Suite struct LaterBackupTests {
    private let folder = FileManager.default.temporaryDirectory.appending(path: "later-\(UUID().uuidString)")
    private let masterKey: MasterKey

    init() throws {
        try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true)
        masterKey = try #require(MasterKey(MasterKey.random()))
    }

    private func write(level: Int64, to path: String) throws {
        let database = [UInt8](repeating: 7, count: 100)
        let digest = SHA256.digest(database.span)
        let manifest = BackupManifest(
            product: "9.0", made: 1_700_000_000, level: level, masterKey: masterKey.idText,
            auditHead: AuditHead(number: 3, tag: Array(repeating: 7, count: 32)), tables: [], files: [],
            databaseBytes: 100, digest: digest.indices.map { digest[$0] })
        try Data().write(to: URL(filePath: path))
        let file = open(path, O_RDWR)
        defer { close(file) }
        let writer = try BackupWriter(
            to: file, path: path, under: .masterKey(masterKey), manifest: manifest, provenBy: masterKey)
        try writer.write(database.span)
        try writer.finish()
    }

    @Test("the level decides, before anything is written", arguments: [1, 2] as [Int64])
    func isRefused(_ more: Int64) throws {
        defer { try? FileManager.default.removeItem(at: folder) }
        let path = folder.appending(path: "backup").path
        let data = folder.appending(path: "data").path
        let current = StoreLayout.current.level
        var keys = BackupKeys()
        keys.masterKey = (masterKey, "here")
        func refusal(at now: Int64) throws -> String? {
            #expect(throws: OperationalError.self) {
                _ = try Configuration(data: data).restore(
                    from: path, opening: keys, after: nil, environment: [:],
                    at: RestorationClock(now: now, confirmation: .given)
                ) { _ in }
            }?.message
        }
        try write(level: current + more, to: path)
        let text = try #require(try refusal(at: 1_700_000_001))
        #expect(
            text.contains("of level \(current + more) of the schema, and this version of level \(current)"))
        #expect(text.hasSuffix("expected version 9.0 or a later one"))
        #expect(!FileManager.default.fileExists(atPath: data))
        // One of this level comes as far as the next check.
        try write(level: current, to: path)
        #expect(try refusal(at: 1)?.contains("set it right first") == true)
    }
}
