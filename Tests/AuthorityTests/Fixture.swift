import CSQLite
import CountersignAuthority
import CountersignSQL
import CountersignSchemes
import CountersignSeal
import CountersignWire
import Foundation
import Testing

/// A folder that is removed after the test.
final class TemporaryFolder: Sendable {
    let path: String

    init() {
        path =
            FileManager.default.temporaryDirectory.appendingPathComponent("countersign-\(UUID().uuidString)")
            .path
        try? FileManager.default.createDirectory(atPath: path, withIntermediateDirectories: true)
    }

    deinit { try? FileManager.default.removeItem(atPath: path) }

    var data: String { "\(path)/data" }

    /// Every file below the data folder, with its bytes. The journal's index is memory that SQLite keeps in a
    /// file.
    func contents() throws -> [String: Data] {
        var contents: [String: Data] = [:]
        for name in try FileManager.default.subpathsOfDirectory(atPath: data) where !name.hasSuffix("-shm") {
            contents[name] = FileManager.default.contents(atPath: "\(data)/\(name)") ?? Data()
        }
        return contents
    }
}

/// Changes the database as a program without any key does.
func execute(sql: String, in folder: TemporaryFolder, changing isChange: Bool = true) throws {
    var database: OpaquePointer?
    try #require(sqlite3_open("\(folder.data)/countersign.db", &database) == SQLITE_OK)
    defer { sqlite3_close(database) }
    try #require(sqlite3_exec(database, sql, nil, nil, nil) == SQLITE_OK)
    #expect(!isChange || sqlite3_changes(database) > 0, "nothing was changed: \(sql)")
}

let hexKey = String(repeating: "ab", count: 32)
let otherHexKey = String(repeating: "cd", count: 32)

func deployment(
    _ data: String, environment: [String: String] = [:], store: (any Store)? = nil,
    accepting copy: AcceptedCopy = .latest
) throws(OperationalError) -> Deployment {
    let folder = try DataFolder(data, absence: .create)
    return try Deployment(
        folder: folder, store: store ?? StorePlace.sqlite(path: folder.database).open(),
        environment: environment, accepting: copy)
}

func draft(_ app: AppName, id: String, version: String = "1.0", scheme: SchemeName = .messageSignatures)
    throws
    -> ReleaseDraft
{
    ReleaseDraft(
        app: app, platform: try #require(Platform("ios")), version: try #require(Version(version)),
        scheme: scheme,
        id: try #require(KeyID(id)), secret: Secret(copying: Array("secret of \(id)".utf8).span))
}

extension Secret {
    var copied: [UInt8] { withExposedBytes { span in (0..<span.count).map { span[$0] } } }
}
