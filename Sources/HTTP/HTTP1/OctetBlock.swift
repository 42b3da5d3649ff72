/// Sixteen bytes of a head, which are looked at together. The classes are those of ``OctetClass``.
struct OctetBlock {
    typealias Mask = SIMDMask<SIMD16<Int8>>

    let bytes: SIMD16<UInt8>

    @inline(__always) private static func all(_ byte: UInt8) -> SIMD16<UInt8> { SIMD16(repeating: byte) }

    @inline(__always) func equals(_ byte: UInt8) -> Mask { bytes .== OctetBlock.all(byte) }

    @inline(__always) private static func isBetween(
        _ bytes: SIMD16<UInt8>, first: UInt8, last: UInt8
    ) -> Mask {
        bytes &- all(first) .<= all(last - first)
    }

    @inline(__always) private var areLetters: Mask {
        OctetBlock.isBetween(bytes | OctetBlock.all(0x20), first: UInt8(ascii: "a"), last: UInt8(ascii: "z"))
    }

    /// Control characters. Of these, only a tab may be in a field value.
    @inline(__always) var areControls: Mask { bytes .< OctetBlock.all(0x20) .| equals(0x7F) }

    /// Letters, digits and hyphens, the bytes of usual field names: of a name of these, a set bit 5 makes the
    /// lower-case name.
    @inline(__always) var areOfNames: Mask {
        areLetters .| equals(UInt8(ascii: "-"))
            .| OctetBlock.isBetween(bytes, first: UInt8(ascii: "0"), last: UInt8(ascii: "9"))
    }

    /// See ``OctetClass/isTarget(_:)``.
    @inline(__always) var areOfTargets: Mask {
        OctetBlock.isBetween(bytes, first: 0x21, last: 0x7E) .& (bytes .!= OctetBlock.all(UInt8(ascii: "#")))
    }

    /// See ``OctetClass/isHost(_:)``.
    @inline(__always) var areOfHosts: Mask {
        areLetters .| OctetBlock.isBetween(bytes, first: UInt8(ascii: "0"), last: UInt8(ascii: ":"))
            .| OctetBlock.isBetween(bytes, first: UInt8(ascii: "-"), last: UInt8(ascii: "."))
            .| equals(UInt8(ascii: "_")) .| equals(UInt8(ascii: "[")) .| equals(UInt8(ascii: "]"))
    }

    @inline(__always) static func isAny(_ mask: Mask) -> Bool {
        let words = unsafeBitCast(mask, to: SIMD2<UInt64>.self)
        return words.x | words.y != 0
    }

    /// The index of the first byte in the mask; 16 if there is none.
    @inline(__always) static func firstIndex(_ mask: Mask) -> Int {
        let words = unsafeBitCast(mask, to: SIMD2<UInt64>.self)
        let (low, high) = (words.x.littleEndian, words.y.littleEndian)
        return (low != 0 ? low.trailingZeroBitCount : 64 &+ high.trailingZeroBitCount) &>> 3
    }
}
