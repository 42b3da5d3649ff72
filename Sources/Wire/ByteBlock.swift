/// Sixteen bytes of a text, which are looked at together.
@usableFromInline package struct ByteBlock {
    @usableFromInline package typealias Mask = SIMDMask<SIMD16<Int8>>

    @usableFromInline package let bytes: SIMD16<UInt8>

    @inlinable package init(bytes: SIMD16<UInt8>) { self.bytes = bytes }

    /// Those from `position` on. Reads without a bounds check: `position` is not negative, and the caller has
    /// checked that `position + 16` is not over the number of bytes.
    @inlinable @inline(__always)
    package init(of text: borrowing Span<UInt8>, uncheckedAt position: Int) {
        bytes = text.bytes.unsafeLoadUnaligned(
            fromUncheckedByteOffset: position, as: SIMD16<UInt8>.self)
    }

    /// A block of sixteen times the same byte.
    @inlinable @inline(__always) package static func all(_ byte: UInt8) -> SIMD16<UInt8> {
        SIMD16(repeating: byte)
    }

    @inlinable @inline(__always) package func equals(_ byte: UInt8) -> Mask {
        bytes .== ByteBlock.all(byte)
    }

    /// `bytes` from `first` to `last`.
    @inlinable @inline(__always) package static func isBetween(
        _ bytes: SIMD16<UInt8>, first: UInt8, last: UInt8
    ) -> Mask {
        bytes &- all(first) .<= all(last - first)
    }

    @inlinable @inline(__always) package var areLetters: Mask {
        ByteBlock.isBetween(bytes | ByteBlock.all(0x20), first: UInt8(ascii: "a"), last: UInt8(ascii: "z"))
    }

    @inlinable @inline(__always) package var areDigits: Mask {
        ByteBlock.isBetween(bytes, first: UInt8(ascii: "0"), last: UInt8(ascii: "9"))
    }

    @inlinable @inline(__always) package static func isAny(_ mask: Mask) -> Bool {
        let words = unsafeBitCast(mask, to: SIMD2<UInt64>.self)
        return words.x | words.y != 0
    }

    /// The index of the first of the sixteen bytes that `mask` selects; 16 if it selects no byte.
    @inlinable @inline(__always) package static func firstIndex(_ mask: Mask) -> Int {
        let words = unsafeBitCast(mask, to: SIMD2<UInt64>.self)
        let (low, high) = (words.x.littleEndian, words.y.littleEndian)
        return (low != 0 ? low.trailingZeroBitCount : 64 &+ high.trailingZeroBitCount) &>> 3
    }
}
