import CountersignWire
import Glibc

/// A file in memory, shared with the kernel: what is written here outlives the process. More addresses are
/// mapped than the file has bytes, so that it can grow in place; those beyond its end must not be touched.
///
/// Safe to share: nothing here changes but `size`, which only the thread that grows the file touches.
final class Mapping: @unchecked Sendable {
    let start: UnsafeMutableRawPointer
    /// Bytes of the file as of the opening or the last ``extend(to:)``.
    private(set) var size: Int
    private let addresses: Int
    private let file: FileDescriptor?

    /// A new file of that size, for its owner alone, with all its blocks reserved. An old one of that name is replaced.
    init(creating path: String, bytes: Int, growingTo most: Int) throws(Fault) {
        if unlink(path) != 0, errno != ENOENT { throw Fault.system(path, code: errno) }
        let file = try FileDescriptor(open: path, O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW)
        do throws(Fault) {
            try file.reserve(bytes)
        } catch {
            unlink(path)
            throw error
        }
        addresses = max(bytes, most)
        start = try Mapping.map(file, addresses, path)
        self.file = file
        size = bytes
    }

    /// The file as it is; nil where there is none.
    init?(opening path: String, growingTo most: Int) throws(Fault) {
        guard let file = try FileDescriptor(existing: path, O_RDWR | O_NOFOLLOW) else { return nil }
        var status = stat()
        guard fstat(file.number, &status) == 0 else { throw Fault.system(path, code: errno) }
        size = Int(status.st_size)
        // Nothing can be mapped of an empty file; one page that reads as damaged stands for it.
        guard size > 0 else {
            addresses = ReplayHeader.bytes
            start = try Mapping.map(nil, addresses, path)
            self.file = nil
            return
        }
        addresses = max(size, most)
        start = try Mapping.map(file, addresses, path)
        self.file = file
    }

    deinit { munmap(start, addresses) }

    /// Makes the file larger, with all its blocks reserved. It may take as long as the disk likes: never under a lock.
    func extend(to bytes: Int) throws(Fault) {
        guard bytes > size else { return }
        guard let file, bytes <= addresses else { throw Fault(.failed, "no addresses for \(bytes) bytes") }
        try file.reserve(bytes)
        size = bytes
    }

    /// Has the kernel make these pages writable now, so that who holds a lock does not wait for it. Where the kernel
    /// is too old for it (before 5.14), the first write does.
    func populate(_ bytes: Range<Int>) {
        let page = 4096
        let first = bytes.lowerBound / page * page
        let end = min((bytes.upperBound + page - 1) / page * page, size)
        let populateForWriting: Int32 = 23
        if first < end { madvise(start + first, end - first, populateForWriting) }
    }

    func synchronise(bytes: Int) throws(Fault) {
        guard msync(start, min(bytes, size), MS_SYNC) == 0 else {
            throw Fault.system("write the replay file", code: errno)
        }
    }

    private static func map(_ file: FileDescriptor?, _ bytes: Int, _ path: String) throws(Fault)
        -> UnsafeMutableRawPointer
    {
        let kind = file == nil ? MAP_PRIVATE | MAP_ANONYMOUS : MAP_SHARED
        guard let start = mmap(nil, bytes, PROT_READ | PROT_WRITE, kind, file?.number ?? -1, 0), start != MAP_FAILED
        else { throw Fault.system("map \(path)", code: errno) }
        return start
    }
}

/// An open file, closed with its last holder.
package final class FileDescriptor: Sendable {
    package let number: Int32

    /// Takes over an open descriptor.
    package init(owning number: Int32) { self.number = number }

    init(open path: String, _ flags: Int32) throws(Fault) {
        number = Glibc.open(path, flags | O_CLOEXEC, 0o600)
        guard number >= 0 else { throw Fault.system(path, code: errno) }
    }

    /// Nil where there is no such file.
    init?(existing path: String, _ flags: Int32) throws(Fault) {
        number = Glibc.open(path, flags | O_CLOEXEC)
        if number < 0 {
            if errno == ENOENT { return nil }
            throw Fault.system(path, code: errno)
        }
    }

    deinit { if number >= 0 { close(number) } }

    /// Makes it at least so long, with a block behind each byte: without one, a page of a full disk would be
    /// a bus error at the first write.
    fileprivate func reserve(_ bytes: Int) throws(Fault) {
        let code = posix_fallocate(number, 0, off_t(bytes))
        guard code == 0 else { throw Fault.system("reserve \(bytes) bytes for the replay table", code: code) }
    }

    /// Holds `path` for this process; whoever comes second is told what is in use.
    static func locked(_ path: String, guarding name: String) throws(Fault) -> FileDescriptor {
        let file = try FileDescriptor(open: path, O_RDWR | O_CREAT | O_NOFOLLOW)
        guard flock(file.number, LOCK_EX | LOCK_NB) == 0 else {
            if errno == EWOULDBLOCK { throw Fault(.failed, "\(name) is in use by another process") }
            throw Fault.system(path, code: errno)
        }
        return file
    }
}

extension Fault {
    /// What the system said about the thing named.
    package static func system(_ name: String, code number: Int32) -> Fault {
        Fault(.failed, "\(name): \(String(cString: strerror(number)))")
    }
}
