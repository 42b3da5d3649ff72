/// A number of bytes, as a type. An integer in its place, as `InlineArray` has it, needs iOS 26.
package protocol ByteLength { static var count: Int { get } }

package enum Length16: ByteLength { package static var count: Int { 16 } }
package enum Length32: ByteLength { package static var count: Int { 32 } }
package enum Length64: ByteLength { package static var count: Int { 64 } }

/// A fixed number of bytes in an array: what digests and key ids are held in where there is no `InlineArray`.
/// Built on all platforms, so that it is tested on Linux; used on Apple's.
package struct ArrayBytes<Length: ByteLength>: Sendable {
    private var array: [UInt8]

    /// Zeros.
    package init() { array = [UInt8](repeating: 0, count: Length.count) }

    /// Each byte by its index.
    package init(_ byte: (_ index: Int) -> UInt8) { array = (0..<Length.count).map(byte) }

    package var count: Int { Length.count }
    package var indices: Range<Int> { 0..<Length.count }

    package var span: Span<UInt8> {
        @_lifetime(borrow self) borrowing get { array.span }
    }

    /// The byte at `index`, which is checked.
    package subscript(index: Int) -> UInt8 {
        get { array[index] }
        set { array[index] = newValue }
    }

    /// All bytes, to be written to; to be wiped, too, where no copy of the value was made.
    package mutating func withUnsafeMutableBytes<Result>(
        _ body: (UnsafeMutableRawBufferPointer) -> Result
    ) -> Result {
        array.withUnsafeMutableBytes { body($0) }
    }
}

/// The standard library's own property is for iOS 26 and later, and this one takes its place wherever this
/// module is imported.
extension Array where Element: BitwiseCopyable {
    /// The elements, without a copy. An array of values without references has one native buffer, which stays
    /// where it is while the array is borrowed.
    @inlinable package var span: Span<Element> {
        @_lifetime(borrow self) borrowing get {
            let elements = withUnsafeBufferPointer { $0 }
            return _overrideLifetime(Span(_unsafeElements: elements), borrowing: self)
        }
    }
}
