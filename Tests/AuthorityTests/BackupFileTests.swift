import CountersignSeal
import CountersignWire
import Foundation
import Testing

@testable import CountersignAuthority

/// A backup reads as it was written, with the key that it was written for; one in which a byte was altered,
/// left out or added does not, whichever byte it is.
@Suite struct BackupFileTests {
    private let folder = FileManager.default.temporaryDirectory.appending(path: "backup-\(UUID().uuidString)")
    private let masterKey: MasterKey

    init() throws {
        try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true)
        masterKey = try #require(MasterKey(MasterKey.random()))
    }

    private var path: String { folder.appending(path: "backup").path }

    private static func manifest(_ key: MasterKey, database: [UInt8]) -> BackupManifest {
        let contents = Array("token".utf8) + database
        let digest = SHA256.digest(contents.span)
        return BackupManifest(
            product: "1", made: 1_700_000_000, level: 19,
            masterKey: key.idText, auditHead: AuditHead(number: 3, tag: Array(repeating: 7, count: 32)),
            tables: [("app", 2)], files: [.init(name: .certificate, bytes: 5)],
            databaseBytes: Int64(database.count), digest: digest.indices.map { digest[$0] })
    }

    private func write(
        _ database: [UInt8], under key: BackupKey, manifest: BackupManifest? = nil,
        provenBy prover: MasterKey? = nil
    ) throws {
        try Data().write(to: URL(filePath: path))
        let file = open(path, O_RDWR | O_TRUNC)
        defer { close(file) }
        let writer = try BackupWriter(
            to: file, path: path, under: key,
            manifest: manifest ?? BackupFileTests.manifest(masterKey, database: database),
            provenBy: prover ?? masterKey)
        try writer.write(Array("token".utf8).span)
        try writer.write(database.span)
        try writer.finish()
    }

    private func read(opening keys: BackupKeys) throws -> [UInt8] {
        let reader = try BackupReader(path, opening: keys)
        try reader.requireProof(under: masterKey, from: "here")
        var database: [UInt8] = []
        try reader.forEachPart { (part) throws(OperationalError) in
            if case .database(let bytes) = part { database += bytes }
        }
        return database
    }

    private var masterKeys: BackupKeys {
        var keys = BackupKeys()
        keys.masterKey = (masterKey, "here")
        return keys
    }

    @Test(
        "of any length, also where a chunk is just full",
        arguments: [0, 1, 65_535, 65_536, 65_537, 131_072, 200_000])
    func reads(count: Int) throws {
        let database = (0..<count).map { UInt8(truncatingIfNeeded: $0 &* 31) }
        try write(database, under: .masterKey(masterKey))
        #expect(try read(opening: masterKeys) == database)
        // The manifest's length is not known here: some length fills the last chunk.
        let pair = try BackupSecretKey()
        try write(database, under: .recipient(pair.recipient))
        var keys = masterKeys
        keys.secretKey = (pair, "there")
        #expect(try read(opening: keys) == database)
    }

    @Test func everyByteCounts() throws {
        try write([1, 2, 3], under: .masterKey(masterKey))
        let whole = try [UInt8](Data(contentsOf: URL(filePath: path)))
        func refuses(_ bytes: [UInt8], because what: String) throws {
            try Data(bytes).write(to: URL(filePath: path))
            #expect(throws: OperationalError.self, "\(what)") { try read(opening: masterKeys) }
        }
        for index in whole.indices {
            var changed = whole
            changed[index] ^= 1 << UInt8(index % 8)
            try refuses(changed, because: "byte \(index) altered")
            try refuses(Array(whole[..<index]), because: "cut off at \(index)")
        }
        try refuses(whole + [0], because: "one byte more")
        try Data(whole).write(to: URL(filePath: path))
        #expect(try read(opening: masterKeys) == [1, 2, 3])
    }

    @Test("contents that are not those of the manifest, and a manifest that the master key has not made")
    func manifests() throws {
        var wrong = BackupFileTests.manifest(masterKey, database: [1, 2, 3])
        wrong.digest[0] ^= 1
        try write([1, 2, 3], under: .masterKey(masterKey), manifest: wrong)
        #expect(throws: OperationalError.self) { try read(opening: masterKeys) }
        for count in [Int64(2), 4, Int64(1) << 59] {
            wrong = BackupFileTests.manifest(masterKey, database: [1, 2, 3])
            wrong.databaseBytes = count
            try write([1, 2, 3], under: .masterKey(masterKey), manifest: wrong)
            #expect(throws: OperationalError.self, "\(count)") { try read(opening: masterKeys) }
        }
        let other = try #require(MasterKey(MasterKey.random()))
        let pair = try BackupSecretKey()
        try write([1, 2, 3], under: .recipient(pair.recipient), provenBy: other)
        var keys = masterKeys
        keys.secretKey = (pair, "there")
        #expect(throws: OperationalError.self) { try read(opening: keys) }
    }

    @Test("a manifest that names another file is refused", arguments: ["admin-token", "decide-secret"])
    func otherFiles(_ name: String) {
        let manifest = BackupFileTests.manifest(masterKey, database: [1])
        let text = String(decoding: manifest.encoded(provenBy: masterKey), as: UTF8.self)
        let other = text.replacing("tls/certificate.pem", with: name)
        #expect(other != text && BackupManifest.read(Array(text.utf8)) != nil)
        #expect(BackupManifest.read(Array(other.utf8)) == nil)
    }

    @Test("a pair of keys is written once, reads as it was written, and is not taken for its other half")
    func pairs() throws {
        let pair = try BackupSecretKey()
        try pair.write(to: path)
        #expect(throws: OperationalError.self) { try pair.write(to: path) }
        #expect(try BackupSecretKey(file: path).recipient == pair.recipient)
        let contents = try [UInt8](Data(contentsOf: URL(filePath: "\(path).pub")))
        #expect(try BackupRecipient(file: path, contents: contents) == pair.recipient)
        let secret = try [UInt8](Data(contentsOf: URL(filePath: path)))
        for wrong in [secret, [], Array("countersign-backup-key:AA".utf8), contents + contents] {
            #expect(throws: OperationalError.self) { try BackupRecipient(file: path, contents: wrong) }
        }
    }
}
