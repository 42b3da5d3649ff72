import CountersignSeal
import CountersignWire
import Glibc

/// A small file of mode 0600 that holds one secret.
package enum KeyFile {
    package static let mostBytes = 4096

    /// The file's bytes without trailing white space; nil if there is no such file. Throws if others may
    /// read the file: it is then no longer secret, and continuing would hide that. A credential of a service
    /// manager may be readable for the group root: the rights of the service's user stand in an access
    /// control list, whose mask the mode shows as the group's. Source: systemd.exec(5), LoadCredential=.
    package static func read(
        _ path: String, isCredential: Bool = false, limit: Int = mostBytes
    ) throws(OperationalError) -> Secret? {
        let file = open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY)
        if file < 0, errno == ENOENT { return nil }
        guard file >= 0 else {
            throw SystemCallError(errno, while: "\(path): cannot open").fault(.unreachable)
        }
        defer { close(file) }
        var status = stat()
        guard fstat(file, &status) == 0, status.st_mode & S_IFMT == S_IFREG else {
            throw OperationalError(.unreachable, message: "\(path): not a file")
        }
        let mayBeShared = isCredential && status.st_uid == 0 && status.st_gid == 0
        guard status.st_mode & (mayBeShared ? 0o037 : 0o077) == 0 else {
            let mode = String(status.st_mode & 0o777, radix: 8)
            throw OperationalError(
                .failed,
                message: "\(path): mode 0\(mode) lets others read this secret; expected 0600 (chmod 600)")
        }
        var bytes = [UInt8](repeating: 0, count: limit)
        defer {
            bytes.withUnsafeMutableBytes { if let start = $0.baseAddress { explicit_bzero(start, $0.count) } }
        }
        guard var count = FileReader.fill(&bytes, from: file) else {
            throw SystemCallError(errno, while: "\(path): cannot read").fault(.unreachable)
        }
        while count > 0, [0x20, 0x09, 0x0A, 0x0D].contains(bytes[count - 1]) { count -= 1 }
        return Secret(copying: bytes.span.extracting(0..<count))
    }

    /// Throws if that cannot be found out: "no" would allow what the file is to prevent.
    package static func exists(_ path: String) throws(OperationalError) -> Bool {
        if access(path, F_OK) == 0 { return true }
        guard errno == ENOENT else {
            throw SystemCallError(errno, while: "\(path): cannot look for it").fault(.unreachable)
        }
        return false
    }

    /// Writes the whole file, of mode 0600 and of the folder's owner, or nothing: to a draft, which is synced
    /// and then renamed.
    static func replace(_ path: String, by bytes: [UInt8]) throws(OperationalError) {
        let draft = KeyFile.draftName(for: path)
        let file = open(draft, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0o600)
        guard file >= 0 else {
            throw SystemCallError(errno, while: "\(draft): cannot make").fault(.unreachable)
        }
        defer { unlink(draft) }
        giveToFolderOwner(file, path: path)
        var written = 0
        while written < bytes.count {
            let here = bytes.withUnsafeBytes {
                Glibc.write(file, $0.baseAddress.map { $0 + written }, bytes.count - written)
            }
            if here < 0, errno == EINTR { continue }
            guard here > 0 else { break }
            written += here
        }
        let code = errno
        let synced = fsync(file)
        close(file)
        guard written == bytes.count, synced == 0 else {
            throw SystemCallError(written < bytes.count ? code : errno, while: "\(path): cannot write").fault(
                .unreachable)
        }
        guard rename(draft, path) == 0 else {
            throw SystemCallError(errno, while: "\(path): cannot replace").fault(.unreachable)
        }
    }

    /// Creates the file, complete and durable or not at all. An existing file stays, without an error: of
    /// two processes that start at once, both then read the first one's file.
    package static func make(at path: String, holding secret: Secret) throws(OperationalError) {
        let draft = KeyFile.draftName(for: path)
        let file = open(draft, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0o600)
        guard file >= 0 else {
            throw SystemCallError(errno, while: "\(draft): cannot make").fault(.unreachable)
        }
        defer { unlink(draft) }
        let isGiven = giveToFolderOwner(file, path: path)
        let written = secret.withExposedBytes { bytes in
            bytes.withUnsafeBytes { write(file, $0.baseAddress, $0.count) }
        }
        let code = errno
        let synced = fsync(file)
        close(file)
        guard isGiven else {
            throw OperationalError(
                .unreachable, message: "\(path): cannot be given to the owner of its folder")
        }
        guard written == secret.count, synced == 0 else {
            throw SystemCallError(written < 0 ? code : ENOSPC, while: "\(path): cannot write").fault(
                .unreachable)
        }
        guard link(draft, path) == 0 || errno == EEXIST else {
            throw SystemCallError(errno, while: "\(path): cannot make").fault(.unreachable)
        }
        syncFolder(of: path)
    }

    /// A file that the superuser makes belongs to the owner of its folder: the server, which may run as
    /// another user, must be able to read it. SQLite does the same with its files. False if that failed.
    @discardableResult
    package static func giveToFolderOwner(_ file: Int32, path: String) -> Bool {
        guard geteuid() == 0 else { return true }
        var (own, status) = (stat(), stat())
        guard fstat(file, &own) == 0, stat(folder(of: path), &status) == 0 else { return false }
        // An existing file of root's, hard-linked here by the folder's owner, must not change its owner.
        guard own.st_uid == 0, own.st_nlink <= 1, own.st_mode & S_IFMT == S_IFREG else { return true }
        return fchown(file, status.st_uid, status.st_gid) == 0
    }

    /// The folder that `path` is in.
    package static func folder(of path: String) -> String {
        path.lastIndex(of: "/").map { $0 == path.startIndex ? "/" : String(path[..<$0]) } ?? "."
    }

    /// A unique name for a file that is not complete yet. It is random and not a process id: in a container
    /// each start has the same one, and a draft left by a crash would block every later start.
    package static func draftName(for path: String) -> String {
        "\(path).\(Hex.encode(SystemRandom().bytes(8).span))"
    }

    /// So that a new name in the folder of `path` is found after a power failure, as far as that can be done.
    package static func syncFolder(of path: String) {
        let folder = open(folder(of: path), O_RDONLY | O_DIRECTORY | O_CLOEXEC)
        guard folder >= 0 else { return }
        fsync(folder)
        close(folder)
    }
}

/// The sources of the master key, in order: the environment, a systemd credential, a file of mode 0600 in
/// the data folder, which the first use creates.
package struct MasterKeySource: Sendable {
    private let environment: [String: String]
    private let folder: DataFolder

    package static let variable = "COUNTERSIGN_MASTER_KEY"
    private static let expected = "expected 32 bytes as 64 hexadecimal digits or as base64url"

    package init(environment: [String: String], folder: DataFolder) {
        self.environment = environment
        self.folder = folder
    }

    /// The file that holds the key where no other source does.
    var path: String { folder.masterKey }
    /// The file that holds the next key while the key is replaced.
    var nextPath: String { folder.nextMasterKey }

    /// The key, and the next one if there is one. After a rotation that did not come to its end, the next
    /// one may be the one in use.
    package struct Found {
        package var current: MasterKey?
        package var next: MasterKey?
    }

    package func find() throws(OperationalError) -> Found {
        // In this order: the file of the next key becomes that of the key.
        let next = try findNext()
        return Found(current: try findCurrent(), next: next)
    }

    /// The key in `master.key.next`, which a rotation introduces; nil if the folder has no such file.
    func findNext() throws(OperationalError) -> MasterKey? { try read(folder.nextMasterKey) }

    /// Whether the key comes from the data folder, so that a rotation can replace it there.
    func isInFolder() throws(OperationalError) -> Bool {
        if environment[MasterKeySource.variable] != nil { return false }
        if let credential, try read(credential) != nil { return false }
        // Without the file, the servers have the key from elsewhere, even if this command does not.
        return try KeyFile.exists(folder.masterKey)
    }

    private var credential: String? { MasterKeySource.credential(in: environment) }

    private static func credential(in environment: [String: String]) -> String? {
        guard let folder = environment["CREDENTIALS_DIRECTORY"], !folder.isEmpty else { return nil }
        return "\(folder)/countersign-master-key"
    }

    /// Nil if no source has a key.
    private func findCurrent() throws(OperationalError) -> MasterKey? {
        if let found = try MasterKeySource.find(in: environment) { return found.key }
        return try read(folder.masterKey)
    }

    /// The key that the process is given, and where; nil if it would be looked for in the data folder.
    package static func find(
        in environment: [String: String]
    ) throws(OperationalError) -> (key: MasterKey, place: String)? {
        if let text = environment[MasterKeySource.variable] {
            let bytes = Array(text.utf8)
            guard let key = MasterKey(text: bytes.span) else {
                throw OperationalError(
                    .failed, message: "\(MasterKeySource.variable): \(MasterKeySource.expected)")
            }
            return (key, MasterKeySource.variable)
        }
        guard let path = credential(in: environment), let key = try read(path, isCredential: true) else {
            return nil
        }
        return (key, path)
    }

    /// For a deployment that has not sealed anything yet: the existing key, or a new one in the folder.
    package func findOrMake() throws(OperationalError) -> MasterKey {
        if let key = try findCurrent() { return key }
        return try make(at: folder.masterKey)
    }

    /// The next key; made if there is none.
    func findOrMakeNext() throws(OperationalError) -> MasterKey {
        if let key = try read(folder.nextMasterKey) {
            // Of a run that was interrupted, perhaps before its name was durable.
            KeyFile.syncFolder(of: folder.nextMasterKey)
            return key
        }
        return try make(at: folder.nextMasterKey)
    }

    private func make(at path: String) throws(OperationalError) -> MasterKey {
        guard let key = MasterKey(MasterKey.random()) else {
            throw OperationalError(.failed, message: "libsodium did not start")
        }
        try KeyFile.make(at: path, holding: key.text())
        guard let kept = try read(path) else {
            throw OperationalError(.unreachable, message: "\(path): it was removed while it was created")
        }
        return kept
    }

    /// Makes the file of the next key that of the key: the former key is gone then.
    func moveNext() throws(OperationalError) {
        guard rename(folder.nextMasterKey, folder.masterKey) == 0 else {
            throw SystemCallError(errno, while: "\(folder.nextMasterKey): cannot rename").fault(.unreachable)
        }
        KeyFile.syncFolder(of: folder.masterKey)
    }

    func removeNext() throws(OperationalError) {
        guard unlink(folder.nextMasterKey) == 0 || errno == ENOENT else {
            throw SystemCallError(errno, while: "\(folder.nextMasterKey): cannot remove").fault(.unreachable)
        }
        KeyFile.syncFolder(of: folder.masterKey)
    }

    private func read(_ path: String) throws(OperationalError) -> MasterKey? {
        try MasterKeySource.read(path)
    }

    private static func read(
        _ path: String, isCredential: Bool = false
    ) throws(OperationalError) -> MasterKey? {
        guard let text = try KeyFile.read(path, isCredential: isCredential) else { return nil }
        guard let key = text.withExposedBytes({ MasterKey(text: $0) }) else {
            throw OperationalError(.failed, message: "\(path): \(MasterKeySource.expected)")
        }
        return key
    }
}
