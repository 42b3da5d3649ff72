import CountersignWire
import Glibc
import Synchronization

/// The folder that holds a deployment: database, keys, certificate. It has mode 0700, and nothing is
/// written outside it.
package struct DataFolder: Sendable, Equatable {
    /// Whether a missing folder is an error or is created.
    package enum MissingFolderAction: Sendable { case fail, create }

    package let path: String

    package init(_ path: String, absence: MissingFolderAction) throws(OperationalError) {
        self.path = path
        var status = stat()
        if stat(path, &status) != 0 {
            guard errno == ENOENT, absence == .create else {
                throw DataFolder.missingFolder(path, code: errno)
            }
            guard mkdir(path, 0o700) == 0 || errno == EEXIST else {
                if errno == ENOENT {
                    throw OperationalError(
                        .unreachable, message: "\(path): the folder it is to be made in does not exist")
                }
                throw SystemCallError(errno, while: "\(path): cannot make the data folder").fault(
                    .unreachable)
            }
            guard stat(path, &status) == 0 else { throw DataFolder.missingFolder(path, code: errno) }
        }
        guard status.st_mode & S_IFMT == S_IFDIR else {
            throw OperationalError(.unreachable, message: "\(path): not a folder; expected the data folder")
        }
        guard access(path, R_OK | W_OK | X_OK) == 0 else {
            throw SystemCallError(errno, while: "\(path): cannot write to the data folder").fault(
                .unreachable)
        }
    }

    /// Removes all permissions of the group and of others, as for a folder that was created beforehand.
    /// Returns one sentence if the mode could not be set: another user owns the folder, or it is one that
    /// users share (`/tmp`).
    package func closeToOthers() -> String? {
        var status = stat()
        guard stat(path, &status) == 0, status.st_mode & 0o077 != 0 else { return nil }
        let reason: String
        if status.st_uid != geteuid() {
            reason = "it belongs to user \(status.st_uid), and this process runs as user \(geteuid())"
        } else if status.st_mode & S_ISVTX != 0 {
            reason = "it is a folder that users share"
        } else if chmod(path, 0o700) == 0 {
            return nil
        } else {
            reason = String(cString: strerror(errno))
        }
        let mode = "0\(String(status.st_mode & 0o7777, radix: 8))"
        return "\(path): the data folder has mode \(mode) and should have 0700, which was not set: \(reason)"
    }

    /// Runs `body` while no server runs on this folder, and none can start: holds the lock of the replay
    /// table, which every server holds. Throws `refusal` if a server runs.
    package func withoutServer<Result>(
        refusal: String, body: () throws(OperationalError) -> Result
    ) throws(OperationalError) -> Result {
        let path = "\(replay).lock"
        let file = open(path, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0o600)
        guard file >= 0 else {
            throw SystemCallError(errno, while: "\(path): cannot find out whether a server runs").fault(
                .unreachable)
        }
        defer { close(file) }
        _ = KeyFile.giveToFolderOwner(file, path: path)
        guard flock(file, LOCK_EX | LOCK_NB) == 0 else {
            guard errno != EWOULDBLOCK else { throw OperationalError(.failed, message: refusal) }
            throw SystemCallError(errno, while: "\(path): cannot find out whether a server runs").fault(
                .unreachable)
        }
        return try body()
    }

    package func file(_ name: String) -> String { "\(path)/\(name)" }

    package var database: String { file("countersign.db") }
    package var masterKey: String { file("master.key") }
    package var nextMasterKey: String { file("master.key.next") }
    package var masterKeyLock: String { file("master.key.lock") }
    /// Exists once the store has its first values, so that it gets them only once.
    package var storeMark: String { file("store-begun") }
    package var generation: String { file("generation") }
    package var replay: String { file("replay") }
    package var loginLimits: String { file("login-limits") }
    package var accountGuesses: String { file("account-guesses") }
    package var adminToken: String { file("admin-token") }
    /// The folder of the files that policy values name, unless a setting names another folder.
    package var policyFiles: String { file("policy-files") }
    /// The tokens of the admin API, as digests.
    package var apiTokens: String { file("api-tokens") }
    package var decideSecret: String { file("decide-secret") }
    /// The copy of the store that a backup is made from, while it is made.
    package var backupCopy: String { file("backup-copy.db") }
    package var backupLock: String { file("backup.lock") }
    /// From when keyed requests are accepted again, after a restore.
    package var keyedRequestsFrom: String { file("keyed-requests-from") }
    /// The highest head of the store that was followed (``FollowedHead``).
    package var followedHead: String { file("followed-head") }
    /// The latest changes of this folder's processes (``StoreChangeFile``).
    package var recentChanges: String { file("recent-changes") }
    package var tls: String { file("tls") }

    /// Throws if there is no folder at the path.
    package static func requireThere(_ path: String) throws(OperationalError) {
        var status = stat()
        guard stat(path, &status) == 0 else { throw missingFolder(path, code: errno) }
    }

    private static func missingFolder(_ path: String, code: Int32) -> OperationalError {
        if code == ENOENT {
            return OperationalError(
                .unreachable,
                message:
                    "\(path): no data folder there; `countersign serve` or `countersign app add` "
                    + "makes one (--data DIR)"
            )
        }
        return SystemCallError(code, while: "\(path): cannot open the data folder").fault(.unreachable)
    }
}

/// An errno with the operation that failed.
package struct SystemCallError {
    private let code: Int32
    private let what: String

    package init(_ code: Int32, while what: String) {
        self.code = code
        self.what = what
    }

    package func fault(_ kind: OperationalError.Kind) -> OperationalError {
        OperationalError(kind, message: "\(what): \(String(cString: strerror(code)))")
    }
}

/// A counter that all processes on this data folder share: a process that changes the store increments it,
/// and the server compares it with the value that its memory is based on. Reading it costs one load from
/// mapped memory.
///
/// It is only a hint: if a process dies between its commit and the increment, the store's own revision
/// still shows the change (``ReleaseKeyDirectory/reconcile()``).
///
/// Unchecked, because of the pointer: the page is mapped from `init` to `deinit`, and accessed only by
/// atomic operations.
package final class DeploymentGeneration: @unchecked Sendable {
    private let page: UnsafeMutableRawPointer
    private static let size = MemoryLayout<Atomic<UInt64>>.size

    package init(_ path: String) throws(OperationalError) {
        let file = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0o600)
        guard file >= 0 else {
            throw SystemCallError(errno, while: "\(path): cannot open").fault(.unreachable)
        }
        defer { close(file) }
        var status = stat()
        guard fstat(file, &status) == 0, status.st_mode & S_IFMT == S_IFREG else {
            throw OperationalError(.unreachable, message: "\(path): not a file")
        }
        if status.st_size < DeploymentGeneration.size {
            // Reserved, not only sized: on a full disk, writing to a hole of a mapped file kills the
            // process.
            let code = posix_fallocate(file, 0, off_t(DeploymentGeneration.size))
            guard code == 0 else {
                throw SystemCallError(code, while: "\(path): cannot make").fault(.unreachable)
            }
        }
        guard let page = mmap(nil, DeploymentGeneration.size, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0),
            page != MAP_FAILED
        else {
            throw SystemCallError(errno, while: "\(path): cannot map").fault(.unreachable)
        }
        self.page = page
    }

    deinit { munmap(page, DeploymentGeneration.size) }

    package var current: UInt64 {
        page.assumingMemoryBound(to: Atomic<UInt64>.self).pointee.load(ordering: .acquiring)
    }

    /// Call this after a change is committed.
    package func advance() {
        page.assumingMemoryBound(to: Atomic<UInt64>.self).pointee.add(1, ordering: .acquiringAndReleasing)
    }
}
