/// Up to `capacity` bytes held inline: digests, MACs and nonces pass from hand to hand without an allocation.
package struct ShortBytes<let capacity: Int>: Sendable {
    @usableFromInline package private(set) var storage: InlineArray<capacity, UInt8>
    @usableFromInline var used: Int

    @inlinable package init() {
        storage = InlineArray(repeating: 0)
        used = 0
    }

    /// A copy of `bytes`; nil where they do not fit.
    @inlinable package init?(_ bytes: Span<UInt8>) {
        self.init()
        guard bytes.count <= capacity else { return nil }
        for index in 0..<bytes.count { storage[index] = bytes[index] }
        used = bytes.count
    }

    /// A digest's bytes; what does not fit is cut off.
    @inlinable package init<let size: Int>(_ digest: InlineArray<size, UInt8>) {
        self.init()
        used = Swift.min(size, capacity)
        for index in 0..<used { storage[index] = digest[index] }
    }

    @inlinable package static var longest: Int { capacity }
    @inlinable package var count: Int { used }
    @inlinable package var isEmpty: Bool { used == 0 }

    /// Adds one byte; false, and nothing added, where it is full.
    @inlinable package mutating func append(_ byte: UInt8) -> Bool {
        guard used < capacity else { return false }
        storage[used] = byte
        used += 1
        return true
    }

    @inlinable package var span: Span<UInt8> {
        @_lifetime(borrow self) borrowing get { storage.span.extracting(0..<used) }
    }

    package var array: [UInt8] { (0..<used).map { storage[$0] } }
}
