import Glibc

/// Counts calls of the C allocator, which Swift's goes through too. It can only be counted from outside: preload a
/// library that wraps `malloc`, `calloc`, `realloc` and `aligned_alloc` and exports the function
/// `countersign_allocations`, as `Benchmarks/allocations.c` does.
package enum AllocationCounter {
    private typealias Read = @convention(c) () -> UInt64

    private static let read: Read? = dlsym(nil, "countersign_allocations").map { unsafeBitCast($0, to: Read.self) }

    /// Calls so far; nil where nothing counts them.
    package static var count: UInt64? { read.map { $0() } }
}
