import CountersignWire
import Glibc
import Synchronization

/// A counter that all processes on this data folder share: who changes the store counts it up, who serves compares it
/// with what it has in memory. Asking costs one load from mapped memory.
///
/// It is a hint and not the truth: should a process die between its commit and the counting, the store's own revision
/// still tells (``LiveKeys/reconcile()``).
///
/// Safe to share: the page is mapped once and for life, and touched only as an atomic.
package final class Generation: @unchecked Sendable {
    private let page: UnsafeMutableRawPointer
    private static let size = MemoryLayout<Atomic<UInt64>>.size

    package init(_ path: String) throws(Fault) {
        let file = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0o600)
        guard file >= 0 else { throw SystemFault(errno, "\(path): cannot open").fault(.unreachable) }
        defer { close(file) }
        var status = stat()
        guard fstat(file, &status) == 0, status.st_mode & S_IFMT == S_IFREG else {
            throw Fault(.unreachable, "\(path): not a file")
        }
        if status.st_size < Generation.size {
            // Reserved, not only sized: on a full disk, touching a hole of a mapped file ends the process.
            let code = posix_fallocate(file, 0, off_t(Generation.size))
            guard code == 0 else { throw SystemFault(code, "\(path): cannot make").fault(.unreachable) }
        }
        guard let page = mmap(nil, Generation.size, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0), page != MAP_FAILED
        else {
            throw SystemFault(errno, "\(path): cannot map").fault(.unreachable)
        }
        self.page = page
    }

    deinit { munmap(page, Generation.size) }

    package var current: UInt64 {
        page.assumingMemoryBound(to: Atomic<UInt64>.self).pointee.load(ordering: .acquiring)
    }

    /// After a change is committed.
    package func advance() {
        page.assumingMemoryBound(to: Atomic<UInt64>.self).pointee.add(1, ordering: .acquiringAndReleasing)
    }
}
