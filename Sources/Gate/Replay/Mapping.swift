import CountersignWire
import Glibc

/// A file in memory, shared with the kernel: what is written here outlives the process.
final class Mapping {
    let start: UnsafeMutableRawPointer
    let count: Int

    /// A new file of that size, for its owner alone, with all its blocks reserved. An old one of that name is replaced.
    init(creating path: String, bytes: Int) throws(Fault) {
        if unlink(path) != 0, errno != ENOENT { throw Fault.system(path, errno) }
        let file = try FileDescriptor(open: path, O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW)
        // Without blocks behind it, a page of a full disk would be a bus error at the first write.
        let reserved = posix_fallocate(file.number, 0, off_t(bytes))
        guard reserved == 0 else {
            unlink(path)
            throw Fault.system("reserve \(bytes) bytes for \(path)", reserved)
        }
        start = try Mapping.map(file, bytes, path)
        count = bytes
    }

    /// The file as it is; nil where there is none.
    init?(opening path: String) throws(Fault) {
        guard let file = try FileDescriptor(existing: path, O_RDWR | O_NOFOLLOW) else { return nil }
        var status = stat()
        guard fstat(file.number, &status) == 0 else { throw Fault.system(path, errno) }
        count = Int(status.st_size)
        // Nothing can be mapped of an empty file; one page that reads as damaged stands for it.
        guard count > 0 else {
            start = try Mapping.map(nil, ReplayHeader.bytes, path)
            return
        }
        start = try Mapping.map(file, count, path)
    }

    deinit { munmap(start, max(count, 1)) }

    func synchronise(bytes: Int) throws(Fault) {
        guard msync(start, min(bytes, count), MS_SYNC) == 0 else { throw Fault.system("write the replay file", errno) }
    }

    private static func map(_ file: FileDescriptor?, _ bytes: Int, _ path: String) throws(Fault)
        -> UnsafeMutableRawPointer
    {
        let kind = file == nil ? MAP_PRIVATE | MAP_ANONYMOUS : MAP_SHARED
        guard let start = mmap(nil, bytes, PROT_READ | PROT_WRITE, kind, file?.number ?? -1, 0), start != MAP_FAILED
        else { throw Fault.system("map \(path)", errno) }
        return start
    }
}

/// An open file, closed with its last holder.
final class FileDescriptor: Sendable {
    let number: Int32

    init(open path: String, _ flags: Int32) throws(Fault) {
        number = Glibc.open(path, flags | O_CLOEXEC, 0o600)
        guard number >= 0 else { throw Fault.system(path, errno) }
    }

    /// Nil where there is no such file.
    init?(existing path: String, _ flags: Int32) throws(Fault) {
        number = Glibc.open(path, flags | O_CLOEXEC)
        if number < 0 {
            if errno == ENOENT { return nil }
            throw Fault.system(path, errno)
        }
    }

    deinit { if number >= 0 { close(number) } }

    /// Holds `path` for this process; whoever comes second is told what is in use.
    static func locked(_ path: String, guarding name: String) throws(Fault) -> FileDescriptor {
        let file = try FileDescriptor(open: path, O_RDWR | O_CREAT | O_NOFOLLOW)
        guard flock(file.number, LOCK_EX | LOCK_NB) == 0 else {
            if errno == EWOULDBLOCK { throw Fault(.failed, "\(name) is in use by another process") }
            throw Fault.system(path, errno)
        }
        return file
    }
}

extension Fault {
    /// What the system said about the thing named.
    static func system(_ name: String, _ number: Int32) -> Fault {
        Fault(.failed, "\(name): \(String(cString: strerror(number)))")
    }
}
