import CountersignSeal
import CountersignWire
import Glibc

/// What a backup takes of a deployment besides the copy of its store.
extension Deployment {
    /// The master key. Throws while it is being replaced: values of the store are then sealed under two keys.
    /// Also creates the tombstone key if it does not exist, so that a deployment restored from the backup
    /// recognizes accounts that were erased later.
    package func keyForBackup() throws(OperationalError) -> MasterKey {
        try masterKey.look()
        let keys = masterKey.keys
        guard keys.next == nil else {
            throw OperationalError(
                .failed,
                message: "backup: the master key is being replaced; run `countersign rotate-master-key` to "
                    + "its end first")
        }
        _ = try tombstoneKey()
        return keys.current
    }

    /// Verifies all rows and the audit log of `copy`, which this deployment's keys open. Returns the head of
    /// the log; throws with the first finding. `noted` is a head that the log must contain.
    package func verify(
        copy: any Store, called name: String, noted: AuditHead? = nil
    ) throws(OperationalError) -> AuditHead {
        func fault(_ text: String) -> OperationalError {
            OperationalError(.failed, message: "\(name): \(text)")
        }
        let rows = try copy.verifyRows()
        if let first = rows.findings.first {
            throw fault("\(first.text); `countersign audit verify` tells more")
        }
        let audit = try auditChain.verify(copy, noted: noted)
        guard audit.findings.isEmpty, let head = audit.head else {
            let other = noted.map { ", or does not contain the backup's head \($0.text)" } ?? ""
            throw fault("the audit log does not verify\(other); `countersign audit verify` tells more")
        }
        return head
    }

    /// Whether `copy` opens under `key`, and under no other key: a replacement of the key may have begun, or
    /// ended, while the copy was made.
    package func isSealed(_ copy: any Store, under key: MasterKey) throws(OperationalError) -> Bool {
        guard try copy.value(of: .masterKeyNextCheck) == nil,
            let check = try copy.value(of: .masterKeyCheck)
        else { return false }
        return MasterKeyCheck(check, under: key) != nil
    }

    /// Keeps a second backup of this data folder from running beside `body`.
    package func asOnlyBackup<Result>(
        _ body: () throws(OperationalError) -> Result
    ) throws(OperationalError) -> Result {
        let path = folder.backupLock
        let file = Glibc.open(path, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0o600)
        guard file >= 0 else {
            throw SystemCallError(errno, while: "\(path): cannot open").fault(.unreachable)
        }
        defer { close(file) }
        KeyFile.giveToFolderOwner(file, path: path)
        guard flock(file, LOCK_EX | LOCK_NB) == 0 else {
            throw OperationalError(.failed, message: "\(path): locked; another backup is being made")
        }
        return try body()
    }
}

extension DataFolder {
    /// The content of a small file of the data folder; nil if the file does not exist.
    package func content(of name: BackupFileName) throws(OperationalError) -> Secret? {
        let path = file(name.rawValue)
        let file = Glibc.open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK)
        if file < 0, errno == ENOENT || errno == ENOTDIR { return nil }
        guard file >= 0 else {
            throw SystemCallError(errno, while: "\(path): cannot open").fault(.unreachable)
        }
        defer { close(file) }
        var bytes = [UInt8](repeating: 0, count: BackupFileName.mostBytes + 1)
        defer { Secret.wipe(&bytes) }
        guard let count = FileReader.fill(&bytes, from: file) else {
            throw SystemCallError(errno, while: "\(path): cannot read").fault(.unreachable)
        }
        guard count <= BackupFileName.mostBytes else {
            throw OperationalError(
                .failed, message: "\(path): over \(BackupFileName.mostBytes) bytes, too long for a backup")
        }
        return Secret(copying: bytes.span.extracting(0..<count))
    }

    /// Writes a file of a backup, with mode 0600, to a folder that has none of that name.
    package func write(_ content: Secret, as name: BackupFileName) throws(OperationalError) {
        if name.rawValue.hasPrefix("tls/") {
            guard mkdir(tls, 0o700) == 0 || errno == EEXIST else {
                throw SystemCallError(errno, while: "\(tls): cannot make the folder").fault(.unreachable)
            }
            // Not through a link that another user has put there.
            let inner = Glibc.open(tls, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC)
            guard inner >= 0 else {
                throw SystemCallError(errno, while: "\(tls): cannot open the folder").fault(.unreachable)
            }
            close(inner)
        }
        try KeyFile.make(at: file(name.rawValue), holding: content)
    }
}

/// From when keyed requests are accepted: a restored deployment does not know which ones ran since the
/// backup, and refuses all of them for as long as clients may repeat them.
extension DataFolder {
    /// Whole Unix seconds; nil for always. Throws if the file is not as it is written.
    package func keyedRequestsStart() throws(OperationalError) -> Int64? {
        guard let text = try KeyFile.read(keyedRequestsFrom) else { return nil }
        let time = text.withExposedBytes { bytes in
            Int64(String(decoding: bytes.indices.map { bytes[$0] }, as: UTF8.self))
        }
        guard let time, time >= 0 else {
            throw OperationalError(
                .failed,
                message: "\(keyedRequestsFrom): expected the time from which keyed requests are accepted, in "
                    + "whole Unix seconds")
        }
        return time
    }

    package func refuseKeyedRequests(until time: Int64) throws(OperationalError) {
        try KeyFile.make(at: keyedRequestsFrom, holding: Secret(copying: Array("\(time)\n".utf8).span))
    }
}
