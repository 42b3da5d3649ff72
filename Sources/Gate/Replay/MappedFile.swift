import CLinux
import CountersignWire
import Glibc

/// A memory-mapped file: what is written here outlives the process. The mapping is larger than the file, so
/// that the file can grow in place; addresses beyond the end of the file must not be accessed.
///
/// Safe to share: only `size` changes, and only the thread that grows the file accesses it.
package final class MappedFile: @unchecked Sendable {
    let start: UnsafeMutableRawPointer
    /// Size of the file in bytes when it was opened or at the last ``extend(to:)``.
    private(set) var size: Int
    private let addresses: Int
    private let file: FileDescriptor?

    /// Creates a file of that size, accessible to its owner only, with all its blocks reserved. Replaces an
    /// existing file of that name.
    init(creating path: String, bytes: Int, growingTo most: Int) throws(OperationalError) {
        if unlink(path) != 0, errno != ENOENT { throw OperationalError.system(path, code: errno) }
        let file = try FileDescriptor(open: path, flags: O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW)
        do {
            try file.reserve(bytes)
        } catch {
            unlink(path)
            throw error
        }
        addresses = max(bytes, most)
        start = try MappedFile.map(file, bytes: addresses, path: path)
        self.file = file
        size = bytes
    }

    /// Opens the existing file; nil if there is none.
    init?(opening path: String, growingTo most: Int) throws(OperationalError) {
        guard let file = try FileDescriptor(existing: path, flags: O_RDWR | O_NOFOLLOW) else { return nil }
        var status = stat()
        guard fstat(file.number, &status) == 0 else { throw OperationalError.system(path, code: errno) }
        size = Int(status.st_size)
        // An empty file cannot be mapped; a page of zeros, which reads as damaged, represents it.
        guard size > 0 else {
            addresses = ReplayHeader.bytes
            start = try MappedFile.map(nil, bytes: addresses, path: path)
            self.file = nil
            return
        }
        addresses = max(size, most)
        start = try MappedFile.map(file, bytes: addresses, path: path)
        self.file = file
    }

    deinit { munmap(start, addresses) }

    /// Makes the file larger, with all its blocks reserved. This may wait for the disk: never call it while
    /// holding a lock.
    package func extend(to bytes: Int) throws(OperationalError) {
        guard bytes > size else { return }
        guard let file, bytes <= addresses else {
            throw OperationalError(.failed, message: "no addresses for \(bytes) bytes")
        }
        try file.reserve(bytes)
        size = bytes
    }

    /// Asks the kernel to make these pages writable now, so that a thread that holds a lock does not wait for
    /// them. With a kernel before 5.14, the first write does that.
    package func populate(_ bytes: Range<Int>) {
        let page = 4096
        let first = bytes.lowerBound / page * page
        let end = min((bytes.upperBound + page - 1) / page * page, size)
        let populateForWriting: Int32 = 23
        if first < end { madvise(start + first, end - first, populateForWriting) }
    }

    func synchronise(bytes: Int) throws(OperationalError) {
        guard msync(start, min(bytes, size), MS_SYNC) == 0 else {
            throw OperationalError.system("write the replay file", code: errno)
        }
    }

    private static func map(_ file: FileDescriptor?, bytes: Int, path: String) throws(OperationalError)
        -> UnsafeMutableRawPointer
    {
        let kind = file == nil ? MAP_PRIVATE | MAP_ANONYMOUS : MAP_SHARED
        guard let start = mmap(nil, bytes, PROT_READ | PROT_WRITE, kind, file?.number ?? -1, 0),
            start != MAP_FAILED
        else { throw OperationalError.system("map \(path)", code: errno) }
        return start
    }
}

/// An open file descriptor, closed with its last reference.
package final class FileDescriptor: Sendable {
    package let number: Int32

    /// Takes ownership of an open descriptor.
    package init(owning number: Int32) { self.number = number }

    init(open path: String, flags: Int32) throws(OperationalError) {
        number = Glibc.open(path, flags | O_CLOEXEC, 0o600)
        guard number >= 0 else { throw OperationalError.system(path, code: errno) }
    }

    /// Nil if there is no such file.
    init?(existing path: String, flags: Int32) throws(OperationalError) {
        number = Glibc.open(path, flags | O_CLOEXEC)
        if number < 0 {
            if errno == ENOENT { return nil }
            throw OperationalError.system(path, code: errno)
        }
    }

    deinit { if number >= 0 { close(number) } }

    /// Makes the file at least that long and reserves all its blocks: without a block, the first write to a
    /// page on a full disk would raise a bus error.
    fileprivate func reserve(_ bytes: Int) throws(OperationalError) {
        let code = posix_fallocate(number, 0, off_t(bytes))
        guard code == 0 else {
            throw OperationalError.system("reserve \(bytes) bytes for the replay table", code: code)
        }
    }

    /// Locks `path` for this process. The error for a second process names the locked resource and the
    /// process that uses it.
    static func locked(_ path: String, guarding name: String) throws(OperationalError) -> FileDescriptor {
        let file = try FileDescriptor(open: path, flags: O_RDWR | O_CREAT | O_NOFOLLOW)
        guard flock(file.number, LOCK_EX | LOCK_NB) == 0 else {
            if errno == EWOULDBLOCK {
                let holder = file.noted().map { "process \($0)" } ?? "another process"
                throw OperationalError(
                    .failed,
                    message:
                        "\(name) is in use by \(holder): a data folder takes only one server; stop it first, "
                        + "or replace it with `countersign restart`")
            }
            throw OperationalError.system(path, code: errno)
        }
        file.noteThisProcess()
        return file
    }

    /// Writes this process's id to the lock file, for the error of a second process.
    func noteThisProcess() {
        let text = Array("\(getpid())\n".utf8)
        guard ftruncate(number, 0) == 0 else { return }
        _ = pwrite(number, text, text.count, 0)
    }

    /// The process id in the lock file; nil if no such process runs.
    private func noted() -> pid_t? {
        var text = [UInt8](repeating: 0, count: 16)
        let count = pread(number, &text, text.count, 0)
        guard count > 1, let id = pid_t(String(decoding: text[..<(count - 1)], as: UTF8.self)),
            kill(id, 0) == 0 || errno == EPERM
        else { return nil }
        return id
    }

    /// Releases the lock for all copies of this descriptor, in every process.
    func unlock() { flock(number, LOCK_UN) }
}

extension OperationalError {
    /// The system's error about `name`.
    package static func system(_ name: String, code number: Int32) -> OperationalError {
        OperationalError(.failed, message: "\(name): \(String(cString: strerror(number)))")
    }
}

/// Zeroed memory that another process can map after it receives the descriptor. Safe to share: it is mapped
/// once, for the life of the object; its contents have locks of their own.
package final class SharedMemory: @unchecked Sendable {
    package let start: UnsafeMutableRawPointer
    /// Nil if the kernel does not support such descriptors; the memory then belongs to this process alone.
    package let descriptor: FileDescriptor?
    private let bytes: Int

    package init(_ name: String, bytes: Int) {
        let number = memfd_create(name, cs_memfd_cloexec)
        descriptor =
            number >= 0 && ftruncate(number, off_t(bytes)) == 0 ? FileDescriptor(owning: number) : nil
        let flags = descriptor == nil ? MAP_SHARED | MAP_ANONYMOUS : MAP_SHARED
        guard let start = mmap(nil, bytes, PROT_READ | PROT_WRITE, flags, descriptor?.number ?? -1, 0),
            start != MAP_FAILED
        else { fatalError("out of memory") }  // lint: as for any failed allocation
        self.start = start
        self.bytes = bytes
    }

    /// Maps the memory of another process.
    package init(sharing descriptor: FileDescriptor, bytes: Int) throws(OperationalError) {
        var status = stat()
        guard fstat(descriptor.number, &status) == 0, status.st_size == bytes else {
            throw OperationalError(
                .failed, message: "the memory that was handed over is not of \(bytes) bytes")
        }
        guard let start = mmap(nil, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, descriptor.number, 0),
            start != MAP_FAILED
        else { throw OperationalError.system("map the memory that was handed over", code: errno) }
        self.start = start
        self.bytes = bytes
        self.descriptor = descriptor
    }

    deinit { munmap(start, bytes) }
}
