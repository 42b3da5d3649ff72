import CSodium

/// Bytes that must not be seen: locked in memory, wiped when the last holder lets go, never printed.
///
/// The bytes live on the heap behind a class because a struct cannot wipe its inline storage when it dies. They are
/// never changed after `init`, which is what makes sharing them between threads sound.
package final class Secret: @unchecked Sendable, CustomStringConvertible, CustomReflectable {
    private let storage: UnsafeMutableRawBufferPointer

    /// Takes a copy; whoever made the original wipes it.
    package init(copying bytes: Span<UInt8>) {
        storage = Secret.allocate(bytes.count)
        bytes.withUnsafeBytes { storage.copyMemory(from: $0) }
    }

    /// `count` bytes from the kernel's generator.
    package init(random count: Int) {
        storage = Secret.allocate(count)
        randombytes_buf(storage.baseAddress, count)
    }

    deinit {
        sodium_memzero(storage.baseAddress, storage.count)
        sodium_munlock(storage.baseAddress, storage.count)
        storage.deallocate()
    }

    package var count: Int { storage.count }

    /// The raw bytes, for the length of `body`. The one door to them, so that a reader can search for it.
    package func withExposedBytes<Result: ~Copyable, Failure: Error>(
        _ body: (Span<UInt8>) throws(Failure) -> Result
    ) throws(Failure) -> Result {
        try body(Span(_unsafeBytes: UnsafeRawBufferPointer(storage)))
    }

    package var description: String { "<secret>" }
    package var customMirror: Mirror { Mirror(self, children: []) }

    private static func allocate(_ count: Int) -> UnsafeMutableRawBufferPointer {
        let storage = UnsafeMutableRawBufferPointer.allocate(byteCount: max(count, 1), alignment: 16)
        // Locking fails where the process may lock no more; the secret is then only as safe as swap is.
        sodium_mlock(storage.baseAddress, storage.count)
        return UnsafeMutableRawBufferPointer(rebasing: storage[..<count])
    }
}
