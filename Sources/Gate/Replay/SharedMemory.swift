import CLinux
import CountersignWire
import Glibc

/// Memory of zeros that another process can map too, once it has been passed the descriptor. Safe to share:
/// it is mapped once and for life; what lies in it has locks of its own.
package final class SharedMemory: @unchecked Sendable {
    package let start: UnsafeMutableRawPointer
    /// Nil where the kernel makes no such descriptors: then the memory is this process's alone.
    package let descriptor: FileDescriptor?
    private let bytes: Int

    package init(_ name: String, bytes: Int) {
        let number = memfd_create(name, cs_memfd_cloexec)
        descriptor = number >= 0 && ftruncate(number, off_t(bytes)) == 0 ? FileDescriptor(owning: number) : nil
        let flags = descriptor == nil ? MAP_SHARED | MAP_ANONYMOUS : MAP_SHARED
        guard let start = mmap(nil, bytes, PROT_READ | PROT_WRITE, flags, descriptor?.number ?? -1, 0),
            start != MAP_FAILED
        else { fatalError("out of memory") }  // lint: as where any allocation fails
        self.start = start
        self.bytes = bytes
    }

    /// The memory of another process.
    package init(sharing descriptor: FileDescriptor, bytes: Int) throws(Fault) {
        var status = stat()
        guard fstat(descriptor.number, &status) == 0, status.st_size == bytes else {
            throw Fault(.failed, "the memory that was handed over is not of \(bytes) bytes")
        }
        guard let start = mmap(nil, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, descriptor.number, 0),
            start != MAP_FAILED
        else { throw Fault.system("map the memory that was handed over", code: errno) }
        self.start = start
        self.bytes = bytes
        self.descriptor = descriptor
    }

    deinit { munmap(start, bytes) }
}
