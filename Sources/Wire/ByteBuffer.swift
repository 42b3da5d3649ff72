/// A growable byte buffer that keeps its memory when it is cleared. It has a single owner, so writing needs
/// no check whether the memory is shared: this halves the cost compared with `[UInt8]` on the gate's path.
@usableFromInline package struct ByteBuffer: ~Copyable, @unchecked Sendable {
    @usableFromInline var memory: UnsafeMutableBufferPointer<UInt8>
    @usableFromInline var used = 0

    /// No memory yet.
    package init() { memory = UnsafeMutableBufferPointer(start: nil, count: 0) }

    package init(capacity: Int) { memory = .allocate(capacity: max(capacity, 1)) }

    deinit { memory.deallocate() }

    @inlinable package var count: Int { used }
    @inlinable package var isEmpty: Bool { used == 0 }

    @inlinable package var span: Span<UInt8> {
        @_lifetime(borrow self) borrowing get {
            let bytes = UnsafeBufferPointer(start: memory.baseAddress, count: used)
            return _overrideLifetime(Span(_unsafeElements: bytes), borrowing: self)
        }
    }

    /// The bytes as text, for people and logs; ill-formed UTF-8 is replaced.
    package var text: String { span.text }

    /// A copy of the bytes.
    package var array: [UInt8] { Array(memory[..<used]) }

    @inlinable package mutating func clear() { used = 0 }

    /// Clears it, and overwrites what it held.
    package mutating func erase() {
        memory[..<used].update(repeating: 0)
        used = 0
    }

    /// Removes the bytes after the first `count`.
    package mutating func cut(to count: Int) { used = min(used, max(count, 0)) }

    @inlinable package mutating func append(_ byte: UInt8) {
        if used == memory.count { grow(by: 1) }
        memory[used] = byte
        used += 1
    }

    @inlinable @inline(__always) package mutating func append(_ bytes: borrowing Span<UInt8>) {
        bytes.withUnsafeBufferPointer { append($0) }
    }

    @inlinable package mutating func append(_ text: StaticString) {
        append(UnsafeBufferPointer(start: text.utf8Start, count: text.utf8CodeUnitCount))
    }

    /// The UTF-8 of a text. Disfavoured, so that a literal is taken as a `StaticString`.
    @_disfavoredOverload
    package mutating func append(_ text: String) {
        var text = text
        text.withUTF8 { append($0) }
    }

    /// The same with ASCII letters in lower case.
    package mutating func append(lowercasing text: String) {
        let start = used
        append(text)
        lowercase(from: start)
    }

    /// The same.
    package mutating func append(lowercasing bytes: borrowing Span<UInt8>) {
        let start = used
        append(bytes)
        lowercase(from: start)
    }

    private mutating func lowercase(from start: Int) {
        // Most texts have no upper case, which eight bytes at a time show.
        let ones: UInt64 = 0x0101_0101_0101_0101
        let written = UnsafeMutableRawBufferPointer(
            UnsafeMutableBufferPointer(rebasing: memory[start..<used]))
        var index = 0
        while index < written.count {
            // The last word overlaps the one before it.
            let start = min(index, written.count - 8)
            if start >= 0 {
                let word = written.loadUnaligned(fromByteOffset: start, as: UInt64.self)
                // The top bit of each byte from `A` to `Z`; also of some beyond ASCII, which are looked at
                // one by one like these.
                let low = word & (ones &* 0x7F)
                let letters = (low &+ ones &* 0x3F) & ~(low &+ ones &* 0x25) & (ones &* 0x80)
                if letters == 0 {
                    index = start + 8
                    continue
                }
            }
            written[index] = ASCII.lowercased(written[index])
            index += 1
        }
    }

    /// Those bytes of another buffer.
    package mutating func append(_ slice: ByteRange, of other: borrowing ByteBuffer) {
        append(other.span.extracting(slice.range))
    }

    /// Bytes of a URL's part: unreserved characters as they are, all others as upper-case escapes. A body may
    /// be nothing but others, so room is made once. Source: RFC 3986 §2.1.
    package mutating func append(escaping bytes: borrowing Span<UInt8>) {
        let most = 3 * bytes.count
        if memory.count - used < most { grow(by: most) }
        for index in 0..<bytes.count {
            let byte = bytes[index]
            if PercentEncoding.isUnreserved(byte) {
                memory[used] = byte
                used += 1
            } else {
                memory[used] = UInt8(ascii: "%")
                memory[used + 1] = PercentEncoding.upper(byte >> 4)
                memory[used + 2] = PercentEncoding.upper(byte & 15)
                used += 3
            }
        }
    }

    /// The decimal digits of `number`.
    package mutating func append(decimal number: Int64) {
        if number < 0 { append(UInt8(ascii: "-")) }
        // The longest has 19 digits.
        var digits = Bytes32()
        var first = digits.count
        var rest = number.magnitude
        repeat {
            first -= 1
            digits[first] = UInt8(ascii: "0") + UInt8(truncatingIfNeeded: rest % 10)
            rest /= 10
        } while rest > 0
        append(digits.span.extracting(first..<digits.count))
    }

    @inlinable @inline(__always) mutating func append(_ bytes: UnsafeBufferPointer<UInt8>) {
        guard let source = bytes.baseAddress else { return }
        if memory.count &- used < bytes.count { grow(by: bytes.count) }
        guard let start = memory.baseAddress else { return }
        (start + used).update(from: source, count: bytes.count)
        used &+= bytes.count
    }

    @usableFromInline mutating func grow(by more: Int) {
        let larger = UnsafeMutableBufferPointer<UInt8>.allocate(
            capacity: max(memory.count * 2, used + more, 64))
        _ = larger.update(fromContentsOf: memory[..<used])
        memory.deallocate()
        memory = larger
    }
}
