import CountersignSodium

/// Bytes that must not be seen: wiped when the last holder lets go, never printed.
///
/// The bytes live on the heap behind a class because a struct cannot wipe its inline storage when it dies. They are
/// never changed after `init`, which is what makes sharing them between threads sound. They are not locked in memory
/// one by one (locks are per page and do not nest); ``ProcessMemory`` keeps all of it from core files instead.
package final class Secret: @unchecked Sendable, CustomStringConvertible, CustomReflectable {
    private let start: UnsafeMutableRawPointer
    package let count: Int

    /// Takes a copy; whoever made the original wipes it.
    package init(copying bytes: Span<UInt8>) {
        count = bytes.count
        start = .allocate(byteCount: max(count, 1), alignment: 16)
        bytes.withUnsafeBytes { source in
            if let base = source.baseAddress { start.copyMemory(from: base, byteCount: source.count) }
        }
    }

    /// Takes a copy, and wipes the original.
    package convenience init(taking bytes: inout [UInt8]) {
        self.init(copying: bytes.span)
        bytes.withUnsafeMutableBytes { sodium_memzero($0.baseAddress, $0.count) }
    }

    /// `count` bytes from the kernel's generator.
    package init(random count: Int) {
        self.count = count
        start = .allocate(byteCount: max(count, 1), alignment: 16)
        randombytes_buf(start, count)
    }

    /// `count` bytes that `write` puts in place, so that no copy of them is left elsewhere.
    init<Failure: Error>(
        count: Int, _ write: (UnsafeMutableRawPointer) throws(Failure) -> Void
    ) throws(Failure) {
        self.count = count
        start = .allocate(byteCount: max(count, 1), alignment: 16)
        try write(start)
    }

    deinit {
        sodium_memzero(start, count)
        start.deallocate()
    }

    /// The raw bytes, for the length of `body`. The one door to them, so that a reader can search for it.
    package func withExposedBytes<Result: ~Copyable, Failure: Error>(
        _ body: (Span<UInt8>) throws(Failure) -> Result
    ) throws(Failure) -> Result {
        try body(Span(_unsafeBytes: UnsafeRawBufferPointer(start: start, count: count)))
    }

    package var description: String { "<secret>" }
    package var customMirror: Mirror { Mirror(self, children: []) }
}
