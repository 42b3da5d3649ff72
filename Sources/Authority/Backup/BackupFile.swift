import CountersignSeal
import CountersignWire
import Glibc

/// The layout of a backup (docs/operate/backup.md, "The file"):
///
///     0 "countersign/1 backup\n" · 21 form (1 under the master key, 2 to a public key)
///     22 id of that key (8) · 30 length of the sealed stream key (1) · 31 the sealed stream key
///     then the head of the stream (24), and its chunks: each 65,536 bytes and 17 more, the last one shorter
///
/// The stream has the length of the manifest (4 bytes, big-endian), the manifest, the small files and the
/// store's file. All that stands before the first chunk is authenticated with each chunk.
package enum BackupFile {
    static let magic = Array("countersign/1 backup\n".utf8)
    /// Bytes of a whole chunk before it is sealed.
    static let chunkBytes = 65_536

    enum Form: UInt8 { case masterKey = 1, recipient = 2 }

    static let keyBinding = SealBinding(kind: "backup-key", row: "stream")
    static let keyPurpose = Array("countersign/1 backup key".utf8)

    /// A seal under the master key, or a sealed box, of the stream's key.
    static func sealedCount(_ form: Form) -> Int {
        switch form {
        case .masterKey: MasterKey.sealedCount(of: SealedStream.keyBytes)
        case .recipient: SealedBox.overhead + SealedStream.keyBytes
        }
    }
}

/// Writes a backup to an open file.
package final class BackupWriter {
    private let file: Int32
    private let path: String
    private let sealer: SealedStream.Sealer
    fileprivate let streamKey: Secret
    /// What stands before the stream.
    private let front: [UInt8]
    private var chunk: [UInt8] = []

    /// `file` is open and empty. It is the caller's to close.
    package init(
        to file: Int32, path: String, under key: BackupKey, manifest: BackupManifest,
        provenBy masterKey: MasterKey
    ) throws(OperationalError) {
        (self.file, self.path) = (file, path)
        let streamKey = Secret(random: SealedStream.keyBytes)
        let (form, id, sealed): (BackupFile.Form, [UInt8], [UInt8]?) =
            switch key {
            case .masterKey(let key):
                (.masterKey, key.id, key.seal(streamKey, as: BackupFile.keyBinding))
            case .recipient(let recipient):
                (
                    .recipient, recipient.idBytes,
                    SealedBox.seal(streamKey, to: recipient.bytes, for: BackupFile.keyPurpose)
                )
            }
        guard let sealed, let sealer = SealedStream.Sealer(key: streamKey) else {
            throw OperationalError(.usage, message: "--recipient: not a key that can be encrypted to")
        }
        (self.sealer, self.streamKey) = (sealer, streamKey)
        front = BackupFile.magic + [form.rawValue] + id + [UInt8(sealed.count)] + sealed
        try put(front + sealer.head)
        chunk.reserveCapacity(BackupFile.chunkBytes)
        let text = manifest.encoded(provenBy: masterKey)
        guard text.count <= BackupManifest.mostBytes else {
            throw OperationalError(.failed, message: "\(path): the manifest is too long")
        }
        let length = (0..<4).map { UInt8(truncatingIfNeeded: text.count >> (24 - 8 * $0)) }
        try write((length + text).span)
    }

    deinit { Secret.wipe(&chunk) }

    package func write(_ bytes: Span<UInt8>) throws(OperationalError) {
        var position = 0
        while position < bytes.count {
            // Only once more follows: the last chunk may be a whole one.
            if chunk.count == BackupFile.chunkBytes { try putChunk(at: .inner) }
            let end = min(bytes.count, position + BackupFile.chunkBytes - chunk.count)
            bytes.extracting(position..<end).withUnsafeBufferPointer { chunk.append(contentsOf: $0) }
            position = end
        }
    }

    /// Writes the last chunk, and makes all of it durable.
    package func finish() throws(OperationalError) {
        try putChunk(at: .last)
        guard fsync(file) == 0 else {
            throw SystemCallError(errno, while: "\(path): cannot make it durable").fault(.unreachable)
        }
    }

    private func putChunk(at place: SealedStream.Place) throws(OperationalError) {
        // A span of a property could not outlive the call in a release build.
        let plain = chunk
        try put(sealer.seal(plain.span, at: place, boundTo: front))
        chunk.removeAll(keepingCapacity: true)
    }

    private func put(_ bytes: [UInt8]) throws(OperationalError) {
        var written = 0
        while written < bytes.count {
            let count = bytes[written...].withUnsafeBytes { Glibc.write(file, $0.baseAddress, $0.count) }
            if count < 0, errno == EINTR { continue }
            guard count > 0 else {
                throw SystemCallError(count < 0 ? errno : ENOSPC, while: "\(path): cannot write it").fault(
                    .unreachable)
            }
            written += count
        }
    }
}

/// Reads a backup, which may be anything: each refusal names the file and says what is wrong with it. Memory
/// is bounded by the manifest's limit and two chunks.
package final class BackupReader {
    package let manifest: BackupManifest
    private let proof: [UInt8]
    private var stream: Stream

    /// Opens the file, decrypts its first chunk and reads the manifest.
    package convenience init(_ path: String, opening keys: BackupKeys) throws(OperationalError) {
        try self.init(path) { (head) throws(OperationalError) in try head.key(among: keys) }
    }

    /// Reads back what `writer` has written to the file.
    package convenience init(_ path: String, writtenBy writer: BackupWriter) throws(OperationalError) {
        try self.init(path) { _ in writer.streamKey }
    }

    private init(
        _ path: String, key: (StreamHead) throws(OperationalError) -> Secret
    ) throws(OperationalError) {
        let file = open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY)
        guard file >= 0 else {
            throw SystemCallError(errno, while: "\(path): cannot open the backup").fault(.usage)
        }
        var stream = try Stream(source: BackupSource(file, path: path), key: key)
        let length = try stream.take(4).reduce(0) { $0 << 8 | Int($1) }
        guard length <= BackupManifest.mostBytes else { throw stream.defect("its manifest is too long") }
        guard let read = BackupManifest.read(try stream.take(length)) else {
            throw stream.defect("its manifest cannot be read; was it made by a newer version?")
        }
        (manifest, proof) = read
        self.stream = stream
    }

    package var path: String { stream.path }

    /// Throws unless the backup was made with the master key.
    package func requireProof(under key: MasterKey, from place: String) throws(OperationalError) {
        guard manifest.masterKey == key.idText else {
            throw stream.defect(
                "its master key is \(manifest.masterKey), and the one in \(place) is \(key.idText)")
        }
        guard manifest.isProven(by: proof, under: key) else {
            throw stream.defect("it was not made by a deployment with this master key")
        }
    }

    /// Gives the files and then, in parts, the store's file to `body`, and compares them with the
    /// digest.
    package func forEachPart(_ body: (Part) throws(OperationalError) -> Void) throws(OperationalError) {
        var digest = SHA256()
        for file in manifest.files {
            var content = try stream.take(file.bytes)
            digest.update(content.span)
            try body(.file(file.name, Secret(taking: &content)))
        }
        var left = manifest.databaseBytes
        while left > 0 {
            var part = try stream.take(Int(min(left, Int64(BackupFile.chunkBytes))))
            defer { Secret.wipe(&part) }
            digest.update(part.span)
            left -= Int64(part.count)
            try body(.database(part))
        }
        try stream.requireEnd()
        let found = digest.finish()
        guard found.indices.map({ found[$0] }) == manifest.digest else {
            throw stream.defect("its contents are not those that its manifest names")
        }
    }

    package enum Part {
        case file(BackupFileName, Secret)
        case database([UInt8])
    }
}

/// The bytes of a backup, as they are in the file.
private final class BackupSource {
    private let file: Int32
    let path: String

    init(_ file: Int32, path: String) { (self.file, self.path) = (file, path) }

    deinit { close(file) }

    /// The next `count` bytes, fewer at the file's end.
    func read(_ count: Int) throws(OperationalError) -> [UInt8] {
        var bytes = [UInt8](repeating: 0, count: count)
        guard let filled = FileReader.fill(&bytes, from: file) else {
            throw SystemCallError(errno, while: "\(path): cannot read the backup").fault(.unreachable)
        }
        bytes.removeLast(count - filled)
        return bytes
    }
}

/// What stands before a backup's stream.
private struct StreamHead {
    let form: BackupFile.Form
    let id: [UInt8]
    let sealed: [UInt8]
    let path: String

    /// The stream's key.
    func key(among keys: BackupKeys) throws(OperationalError) -> Secret {
        let id = Hex.encode(self.id.span)
        let opened: Secret?
        switch form {
        case .masterKey:
            guard let (key, place) = keys.masterKey else {
                throw defect("encrypted under the master key \(id): expected it as --master-key FILE")
            }
            guard key.id == self.id else {
                throw defect("encrypted under the master key \(id), and the one in \(place) is \(key.idText)")
            }
            opened = try? key.open(sealed, as: BackupFile.keyBinding)
        case .recipient:
            guard let (key, place) = keys.secretKey else {
                throw defect("encrypted to the public key \(id): expected its secret key as --key FILE")
            }
            guard key.recipient.idBytes == self.id else {
                throw defect(
                    "encrypted to the public key \(id), and the one of \(place) is \(key.recipient.id)")
            }
            opened = try? key.receiver.open(sealed, for: BackupFile.keyPurpose)
        }
        guard let opened else { throw defect("altered: its stream key does not open") }
        return opened
    }

    private func defect(_ text: String) -> OperationalError {
        OperationalError(.failed, message: "\(path): \(text)")
    }
}

/// The decrypted bytes of a backup.
private struct Stream {
    private let source: BackupSource
    private let opener: SealedStream.Opener
    private let front: [UInt8]
    private var chunk: [UInt8] = []
    private var position = 0
    private var hasEnded = false

    var path: String { source.path }

    init(
        source: BackupSource, key: (StreamHead) throws(OperationalError) -> Secret
    ) throws(OperationalError) {
        self.source = source
        func defect(_ text: String) -> OperationalError { Stream.defect(text, of: source.path) }
        let start = try source.read(BackupFile.magic.count + 10)
        guard start.starts(with: BackupFile.magic) else { throw defect("not a backup of countersign") }
        guard start.count == BackupFile.magic.count + 10 else { throw defect("cut off within its head") }
        guard let form = BackupFile.Form(rawValue: start[BackupFile.magic.count]) else {
            throw defect("of a form that this version does not know; was it made by a newer one?")
        }
        guard Int(start[start.count - 1]) == BackupFile.sealedCount(form) else {
            throw defect("altered: its head is not as one is written")
        }
        let sealed = try source.read(BackupFile.sealedCount(form))
        let head = try source.read(SealedStream.headBytes)
        guard head.count == SealedStream.headBytes else { throw defect("cut off within its head") }
        let streamHead = StreamHead(
            form: form, id: Array(start[(BackupFile.magic.count + 1)...].prefix(8)), sealed: sealed,
            path: source.path)
        guard let opener = try SealedStream.Opener(key: key(streamHead), head: head) else {
            throw defect("altered: its head is not as one is written")
        }
        self.opener = opener
        front = start + sealed
        try readChunk()
    }

    mutating func take(_ count: Int) throws(OperationalError) -> [UInt8] {
        var bytes: [UInt8] = []
        // It may become a secret: without this it would be moved, and its former places not wiped.
        bytes.reserveCapacity(count)
        while bytes.count < count {
            if position == chunk.count {
                guard !hasEnded else { throw defect("shorter than its manifest says") }
                try readChunk()
                continue
            }
            let end = min(chunk.count, position + count - bytes.count)
            bytes += chunk[position..<end]
            position = end
        }
        return bytes
    }

    mutating func requireEnd() throws(OperationalError) {
        guard hasEnded, position == chunk.count else { throw defect("longer than its manifest says") }
        guard try source.read(1).isEmpty else { throw defect("altered: there are bytes behind its end") }
        Secret.wipe(&chunk)
    }

    private mutating func readChunk() throws(OperationalError) {
        let most = BackupFile.chunkBytes + SealedStream.overhead
        let sealed = try source.read(most)
        guard !sealed.isEmpty else { throw defect("cut off: its last part is missing") }
        let place: SealedStream.Place
        Secret.wipe(&chunk)
        do {
            place = try opener.open(sealed[...], into: &chunk, boundTo: front)
        } catch {
            throw defect(sealed.count < most ? "its last part was altered, cut off or added to" : "altered")
        }
        // An inner chunk that is short was not written by this program.
        guard place == .last || sealed.count == most else { throw defect("altered") }
        (position, hasEnded) = (0, place == .last)
    }

    func defect(_ text: String) -> OperationalError { Stream.defect(text, of: path) }

    private static func defect(_ text: String, of path: String) -> OperationalError {
        OperationalError(.failed, message: "\(path): \(text)")
    }
}
