/// Up to 64 bytes stored inline: passing digests, MACs and nonces needs no allocation.
///
/// One size for all: a generic capacity would cost more, in run-time metadata, than the bytes it saves.
package struct ShortBytes: Sendable {
    package static let longest = 64

    private var storage: Bytes64
    private var used: Int

    package init() {
        storage = Bytes64()
        used = 0
    }

    /// The first `count` bytes, at most all; the others are zeros.
    init(_ bytes: Bytes64, count: Int) {
        storage = bytes
        used = min(count, ShortBytes.longest)
    }

    /// A copy of `bytes`; nil where they do not fit.
    package init?(_ bytes: borrowing Span<UInt8>) {
        guard bytes.count <= ShortBytes.longest else { return nil }
        self.init()
        used = bytes.count
        bytes.withUnsafeBytes { source in
            storage.withUnsafeMutableBytes { $0.copyMemory(from: source) }
        }
    }

    package init(_ digest: Bytes16) {
        self.init()
        used = 16
        digest.span.withUnsafeBytes { digest in
            storage.withUnsafeMutableBytes { $0.copyMemory(from: digest) }
        }
    }

    package init(_ digest: Bytes32) {
        self.init()
        used = 32
        digest.span.withUnsafeBytes { digest in
            storage.withUnsafeMutableBytes { $0.copyMemory(from: digest) }
        }
    }

    package var count: Int { used }
    package var isEmpty: Bool { used == 0 }

    /// Adds one byte; false, and nothing added, where it is full.
    package mutating func append(_ byte: UInt8) -> Bool {
        guard used < ShortBytes.longest else { return false }
        storage[used] = byte
        used += 1
        return true
    }

    package var span: Span<UInt8> {
        @_lifetime(borrow self) borrowing get { storage.span.extracting(0..<used) }
    }

    package var array: [UInt8] { (0..<used).map { storage[$0] } }
}
