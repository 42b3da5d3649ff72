import Glibc

/// An exclusive `flock` on a file that is never removed: the kernel gives it back when its holder dies, however.
final class FileLease: VaultLease {
    private let file: Int32

    private init(_ file: Int32) { self.file = file }

    deinit { close(file) }

    /// The descriptor closes with the last reference; unlocking first lets the next one in at once.
    func release() { flock(file, LOCK_UN) }

    /// Asks until it is had, `patience` seconds at most. Never blocks its thread: the holder may be a task that needs it.
    nonisolated(nonsending) static func take(_ path: String, patience: Int) async throws(VaultProblem) -> FileLease {
        let file = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0o600)
        guard file >= 0 else { throw VaultProblem("\(path): cannot open: \(String(cString: strerror(errno)))") }
        let lease = FileLease(file)
        for _ in 0..<max(1, patience * 50) {
            if flock(file, LOCK_EX | LOCK_NB) == 0 { return lease }
            guard errno == EWOULDBLOCK || errno == EINTR else {
                throw VaultProblem("\(path): cannot lock: \(String(cString: strerror(errno)))")
            }
            do {
                try await Task.sleep(nanoseconds: 20_000_000)
            } catch {
                throw VaultProblem("\(path): waiting for its lock was given up")
            }
        }
        throw VaultProblem("\(path): another process has held its lock for \(patience) seconds")
    }
}
