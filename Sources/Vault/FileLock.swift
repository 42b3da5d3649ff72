#if canImport(Darwin)
    import Darwin
#else
    import Glibc
#endif

/// An exclusive `flock` on a file that is never removed. The kernel releases the lock when the process that
/// holds it ends, for whatever reason.
package final class FileLock: Sendable {
    private let file: Int32

    private init(_ file: Int32) { self.file = file }

    deinit { close(file) }

    /// The descriptor closes with the last reference; unlocking first lets the next waiter in at once.
    package func release() { flock(file, LOCK_UN) }

    /// Blocks its thread: for locks that are held as long as a write takes.
    package static func take(_ path: String, within patience: Duration) throws(VaultError) -> FileLock {
        let lock = try openFile(path)
        let end = ContinuousClock.now + patience
        repeat {
            if try lock.tryLock(path) { return lock }
            usleep(2_000)
        } while ContinuousClock.now < end
        throw .failed("\(path): another process has held this lock for \(patience)")
    }

    /// Blocks no thread: the holder may be a task that needs it.
    static func wait(_ path: String, within patience: Duration) async throws(VaultError)
        -> FileLock
    {
        let lock = try openFile(path)
        let end = ContinuousClock.now + patience
        repeat {
            if try lock.tryLock(path) { return lock }
            do {
                try await Task.sleep(nanoseconds: 20_000_000)
            } catch {
                throw .failed("\(path): waiting for this lock was given up")
            }
        } while ContinuousClock.now < end
        throw .failed("\(path): another process has held this lock for \(patience)")
    }

    private static func openFile(_ path: String) throws(VaultError) -> FileLock {
        let file = open(path, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0o600)
        guard file >= 0 else { throw .failed("\(path): cannot open: \(String(cString: strerror(errno)))") }
        return FileLock(file)
    }

    private func tryLock(_ path: String) throws(VaultError) -> Bool {
        if flock(file, LOCK_EX | LOCK_NB) == 0 { return true }
        guard errno == EWOULDBLOCK || errno == EINTR else {
            throw .failed("\(path): cannot lock: \(String(cString: strerror(errno)))")
        }
        return false
    }
}

/// The two locks of a vault. They are separate because the holder of the lease also writes.
package struct VaultLocks: Sendable {
    private let folder: String
    private let writing: Duration

    /// `folder` is the same for all processes that share the vault on one machine; it is made if it does not
    /// exist. `writing` is the time that a writer waits for another.
    package init(folder: String, writing: Duration = .seconds(10)) {
        self.folder = folder
        self.writing = writing
    }

    func write() throws(VaultError) -> FileLock {
        try PrivateFolder.make(folder)
        return try FileLock.take("\(folder)/writing.lock", within: writing)
    }

    func lease(within patience: Duration) async throws(VaultError) -> FileLock {
        try PrivateFolder.make(folder)
        return try await FileLock.wait("\(folder)/lease.lock", within: patience)
    }
}
