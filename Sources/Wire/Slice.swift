/// A run of bytes named by its offsets into the buffer that holds it, so that a parsed request is one buffer and a
/// table of numbers: nothing is copied, nothing can dangle.
///
/// `@usableFromInline` on the type is what makes `@inlinable` work for other modules at `package` access.
@usableFromInline package struct Slice: BitwiseCopyable, Sendable, Hashable {
    @usableFromInline package var start: UInt32
    @usableFromInline package var end: UInt32

    @inlinable package init(_ start: Int, _ end: Int) {
        self.start = UInt32(truncatingIfNeeded: start)
        self.end = UInt32(truncatingIfNeeded: end)
    }

    @inlinable package static var empty: Slice { Slice(0, 0) }
    @inlinable package var count: Int { Int(end) - Int(start) }
    @inlinable package var isEmpty: Bool { start == end }
    @inlinable package var range: Range<Int> { Int(start)..<Int(end) }
}
