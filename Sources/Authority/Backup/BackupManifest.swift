import CountersignSeal
import CountersignWire

/// What a backup says of its contents: the first part of its stream, as JSON.
package struct BackupManifest: Sendable, Equatable {
    /// A small file of the data folder.
    package struct File: Sendable, Equatable {
        package var name: BackupFileName
        package var bytes: Int

        package init(name: BackupFileName, bytes: Int) { (self.name, self.bytes) = (name, bytes) }
    }

    /// The version that made it.
    package var product: String
    /// When the store was read: whole Unix seconds.
    package var made: Int64
    /// The level of the store's schema.
    package var level: Int64
    /// The id of the master key, in hexadecimal.
    package var masterKey: String
    /// The end of the audit log.
    package var auditHead: AuditHead
    /// Rows of each table.
    package var tables: [(name: String, rows: Int64)]
    package var files: [File]
    /// The store's file.
    package var databaseBytes: Int64
    /// SHA-256 of all that follows the manifest: the files, then the store's.
    package var digest: [UInt8]

    /// A manifest is at most so long.
    static let mostBytes = 65_536

    package init(
        product: String, made: Int64, level: Int64, masterKey: String, auditHead: AuditHead,
        tables: [(name: String, rows: Int64)], files: [File], databaseBytes: Int64, digest: [UInt8]
    ) {
        (self.product, self.made, self.level, self.masterKey) = (product, made, level, masterKey)
        (self.auditHead, self.tables, self.files) = (auditHead, tables, files)
        (self.databaseBytes, self.digest) = (databaseBytes, digest)
    }

    package static func == (left: BackupManifest, right: BackupManifest) -> Bool { left.json == right.json }

    package var rows: Int64 { tables.reduce(0) { $0.addingReportingOverflow($1.rows).partialValue } }

    package var json: JSONValue { .object(members) }

    private var members: [(name: String, value: JSONValue)] {
        [
            ("product", .string(product)), ("made", .integer(made)), ("level", .integer(level)),
            ("master_key", .string(masterKey)), ("audit_head", .string(auditHead.text)),
            ("tables", .object(tables.map { (name: $0.name, value: .integer($0.rows)) })),
            (
                "files",
                .array(
                    files.map { ["name": .string($0.name.rawValue), "bytes": .integer(Int64($0.bytes))] })
            ),
            ("database_bytes", .integer(databaseBytes)), ("sha256", .string(Hex.encode(digest.span))),
        ]
    }

    /// The manifest with its proof: nothing, sealed under the master key and bound to the manifest. A backup
    /// that is encrypted to a public key could be made by every holder of that key; its proof could not.
    func encoded(provenBy key: MasterKey) -> [UInt8] {
        let proof = key.seal(Secret(copying: [UInt8]().span), as: binding)
        return JSONValue.object(members + [("proof", .string(Hex.encode(proof.span)))]).bytes
    }

    private var binding: SealBinding { SealBinding(kind: "backup", row: json.text) }

    /// Reads what ``encoded(provenBy:)`` writes.
    static func read(_ bytes: [UInt8]) -> (manifest: BackupManifest, proof: [UInt8])? {
        guard bytes.count <= mostBytes, let document = try? JSONReader.read(bytes) else { return nil }
        let root = document.root
        func integer(_ value: JSON?, most: Int = Int.max) -> Int64? {
            value.flatMap { document.integer($0, in: 0...most) }.map(Int64.init)
        }
        guard let product = root["product"]?.string, let made = integer(root["made"], most: 1 << 40),
            let level = integer(root["level"], most: 1 << 20), let key = root["master_key"]?.string,
            let head = root["audit_head"]?.string.flatMap({ AuditHead($0) }),
            let tables = root["tables"]?.members, let files = root["files"]?.elements,
            let databaseBytes = integer(root["database_bytes"], most: 1 << 60),
            let digest = root["sha256"]?.string.flatMap({ Hex.decode($0) }), digest.count == 32,
            let proof = root["proof"]?.string.flatMap({ Hex.decode($0) })
        else { return nil }
        var manifest = BackupManifest(
            product: product, made: made, level: level, masterKey: key, auditHead: head, tables: [],
            files: [], databaseBytes: databaseBytes, digest: digest)
        for table in tables {
            guard let rows = integer(table.value) else { return nil }
            manifest.tables.append((table.name, rows))
        }
        for file in files {
            guard let name = file["name"]?.string.flatMap({ BackupFileName(rawValue: $0) }),
                let count = integer(file["bytes"], most: BackupFileName.mostBytes),
                !manifest.files.contains(where: { $0.name == name })
            else { return nil }
            manifest.files.append(File(name: name, bytes: Int(count)))
        }
        return (manifest, proof)
    }

    func isProven(by proof: [UInt8], under key: MasterKey) -> Bool {
        (try? key.open(proof, as: binding)) != nil
    }
}

/// The small files of a data folder that a backup may have. Any other name is refused: it would be written
/// somewhere.
package enum BackupFileName: String, Sendable, CaseIterable {
    /// Only where that was asked for.
    case masterKey = "master.key"
    case certificate = "tls/certificate.pem"
    case certificateKey = "tls/key.pem"

    /// What a backup has of the folder without being asked, and what a restoration writes. Never the admin
    /// token and the secret of `decide`: they may have been replaced since because others knew them, and the
    /// next start makes new ones.
    package var isRestored: Bool { self != .masterKey }

    /// Each is at most so long.
    package static let mostBytes = 65_536
}
