#if canImport(Darwin)
    import Darwin
#else
    import Glibc
#endif

// Provides spans of arrays to importing modules: the standard library's property requires an iOS newer than
// 16.
@_exported import CountersignMemory

/// Case and kind of single bytes. Only ASCII letters have case here, whatever the locale.
@usableFromInline package enum ASCII {
    @inlinable package static func lowercased(_ byte: UInt8) -> UInt8 {
        byte >= 0x41 && byte <= 0x5A ? byte | 0x20 : byte
    }

    @inlinable package static func isDigit(_ byte: UInt8) -> Bool { byte >= 0x30 && byte <= 0x39 }

    @inlinable package static func isLetter(_ byte: UInt8) -> Bool {
        let lower = byte | 0x20
        return lower >= 0x61 && lower <= 0x7A
    }

    /// Whether two texts are equal but for the case of ASCII letters. Most that differ differ in length.
    package static func isSame(_ left: String, withoutCase right: String) -> Bool {
        left.utf8.count == right.utf8.count
            && left.utf8.elementsEqual(right.utf8) { lowercased($0) == lowercased($1) }
    }
}

/// A range of bytes as offsets into the buffer that holds it, so that a parsed request is one buffer and a
/// table of numbers: nothing is copied, and no reference can dangle.
///
/// `@usableFromInline` on the type is what makes `@inlinable` work for other modules at `package` access.
@usableFromInline package struct ByteRange: BitwiseCopyable, Sendable, Hashable {
    @usableFromInline package var start: UInt32
    @usableFromInline package var end: UInt32

    @inlinable package init(from start: Int, to end: Int) {
        self.start = UInt32(truncatingIfNeeded: start)
        self.end = UInt32(truncatingIfNeeded: end)
    }

    @inlinable package static var empty: ByteRange { ByteRange(from: 0, to: 0) }
    @inlinable package var count: Int { Int(end) - Int(start) }
    @inlinable package var isEmpty: Bool { start == end }
    @inlinable package var range: Range<Int> { Int(start)..<Int(end) }
}

extension Array where Element: BitwiseCopyable {
    /// Makes these the array's elements, in the memory that it has. If there are as many as before, as in
    /// most messages of one connection, this is one copy.
    @inlinable package mutating func replaceAll(with elements: borrowing Span<Element>) {
        let common = Swift.min(count, elements.count)
        elements.withUnsafeBufferPointer { elements in
            withUnsafeMutableBufferPointer { old in
                guard let from = elements.baseAddress else { return }
                old.baseAddress?.update(from: from, count: common)
            }
            if common < elements.count { append(contentsOf: elements[common...]) }
        }
        if common < count, common == elements.count { removeLast(count - common) }
    }
}

extension Span<UInt8> {
    /// Byte for byte. For public bytes only: the time taken tells where they differ.
    @inlinable package func matches(_ text: StaticString) -> Bool {
        guard count == text.utf8CodeUnitCount else { return false }
        return withUnsafeBufferPointer {
            areSame(left: $0, right: UnsafeBufferPointer(start: text.utf8Start, count: count))
        }
    }

    /// Byte for byte. For public bytes only: the time taken tells where they differ.
    @inlinable package func matches(_ other: borrowing Span<UInt8>) -> Bool {
        guard count == other.count else { return false }
        return withUnsafeBufferPointer { bytes in
            other.withUnsafeBufferPointer { areSame(left: bytes, right: $0) }
        }
    }

    /// Compared without the case of ASCII letters; `text` is lower-case.
    @inlinable package func matchesWithoutCase(_ text: StaticString) -> Bool {
        guard count == text.utf8CodeUnitCount else { return false }
        for index in 0..<count where ASCII.lowercased(self[index]) != text.utf8Start[index] { return false }
        return true
    }

    /// The first offset of `byte` at or after `start`; nil if there is none. The C library compares many
    /// bytes at once.
    package func firstIndex(of byte: UInt8, from start: Int) -> Int? {
        guard start >= 0, start < count else { return nil }
        return withUnsafeBufferPointer { bytes in
            guard let base = bytes.baseAddress,
                let found = memchr(base + start, CInt(byte), bytes.count - start)
            else {
                return nil
            }
            return found - UnsafeMutableRawPointer(mutating: base)
        }
    }

    /// Where `pattern` is first met; nil where it is not. Linear in the number of bytes where no byte of the
    /// pattern but its first is like its first.
    package func firstIndex(of pattern: Span<UInt8>) -> Int? {
        guard !pattern.isEmpty, pattern.count <= count else { return nil }
        return withUnsafeBufferPointer { bytes in
            pattern.withUnsafeBufferPointer { pattern in
                for start in 0...(bytes.count - pattern.count) where bytes[start] == pattern[0] {
                    var length = 1
                    while length < pattern.count, bytes[start + length] == pattern[length] { length += 1 }
                    if length == pattern.count { return start }
                }
                return nil
            }
        }
    }

    /// The bytes as text, for people and logs; ill-formed UTF-8 is replaced.
    package var text: String { withUnsafeBufferPointer { String(decoding: $0, as: UTF8.self) } }
}

/// Whether both hold the same bytes; they are equally long. A call of the C library would cost more than most
/// comparisons of names.
@inlinable @inline(__always)
package func areSame(left: UnsafeBufferPointer<UInt8>, right: UnsafeBufferPointer<UInt8>) -> Bool {
    guard let first = left.baseAddress, let second = right.baseAddress else { return true }
    switch left.count {
    case 8...16: return areSame(left: first, right: second, count: left.count, as: UInt64.self)
    case 4..<8: return areSame(left: first, right: second, count: left.count, as: UInt32.self)
    default: return areSame(left: first, right: second, count: left.count)
    }
}

/// The same for one or two words of bytes: the second word overlaps the first where there are fewer.
@inlinable @inline(__always)
package func areSame<Word: FixedWidthInteger & BitwiseCopyable>(
    left: UnsafeRawPointer, right: UnsafeRawPointer, count: Int, as _: Word.Type
) -> Bool {
    let last = count &- MemoryLayout<Word>.size
    return left.loadUnaligned(as: Word.self) == right.loadUnaligned(as: Word.self)
        && left.loadUnaligned(fromByteOffset: last, as: Word.self)
            == right.loadUnaligned(fromByteOffset: last, as: Word.self)
}

@usableFromInline func areSame(left: UnsafeRawPointer, right: UnsafeRawPointer, count: Int) -> Bool {
    memcmp(left, right, count) == 0
}
