import CountersignAuthority
import CountersignSeal
import CountersignWire
import Glibc

/// What goes into a backup behind its manifest: small files, then the store's file in parts.
struct BackupContents {
    let files: [BackupManifest.File]
    let databaseBytes: Int64
    private let contents: [Secret]
    private let database: String

    private static let partBytes = 65_536

    /// `database` is a copy that does not change any more. The master key is in it only if it is given.
    init(
        of folder: DataFolder, database: String, including masterKey: MasterKey?
    ) throws(OperationalError) {
        var files: [BackupManifest.File] = []
        var contents: [Secret] = []
        for name in BackupFileName.allCases where name == .masterKey || name.isRestored {
            let content = name == .masterKey ? masterKey?.text() : try folder.content(of: name)
            guard let content else { continue }
            files.append(BackupManifest.File(name: name, bytes: content.count))
            contents.append(content)
        }
        var status = stat()
        guard stat(database, &status) == 0 else {
            throw SystemCallError(errno, while: "\(database): cannot look at it").fault(.unreachable)
        }
        (self.files, self.contents) = (files, contents)
        (self.database, databaseBytes) = (database, Int64(status.st_size))
    }

    /// SHA-256 of all of it.
    func digest() throws(OperationalError) -> [UInt8] {
        var hash = SHA256()
        try forEachPart { (part, _) throws(OperationalError) in hash.update(part) }
        let digest = hash.finish()
        return digest.indices.map { digest[$0] }
    }

    func forEachPart(
        _ body: (_ part: Span<UInt8>, _ isDatabase: Bool) throws(OperationalError) -> Void
    ) throws(OperationalError) {
        for content in contents {
            try content.withExposedBytes { (bytes) throws(OperationalError) in try body(bytes, false) }
        }
        let file = open(database, O_RDONLY | O_CLOEXEC)
        guard file >= 0 else {
            throw SystemCallError(errno, while: "\(database): cannot open").fault(.unreachable)
        }
        defer { close(file) }
        var bytes = [UInt8](repeating: 0, count: BackupContents.partBytes)
        var left = databaseBytes
        while left > 0 {
            let count = read(file, &bytes, Int(min(left, Int64(bytes.count))))
            if count < 0, errno == EINTR { continue }
            guard count > 0 else {
                throw SystemCallError(count < 0 ? errno : EIO, while: "\(database): cannot read").fault(
                    .unreachable)
            }
            try body(bytes.span.extracting(0..<count), true)
            left -= Int64(count)
        }
    }
}
