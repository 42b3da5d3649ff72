/// Some of a message's first 128 fields, by index into `Request.fields`. The standard library's `UInt128`
/// needs iOS 18.
@usableFromInline package struct FieldMask: Sendable, Equatable, ExpressibleByArrayLiteral {
    /// As many fields as a mask can name.
    package static let limit = 128

    @usableFromInline var low: UInt64
    @usableFromInline var high: UInt64

    @inlinable init(low: UInt64, high: UInt64) {
        self.low = low
        self.high = high
    }

    /// No field.
    @inlinable package init() { self.init(low: 0, high: 0) }

    /// That field alone; none where a mask cannot name it.
    @inlinable package init(_ index: Int) {
        let bit: UInt64 = 1 << UInt64(truncatingIfNeeded: index & 63)
        self.init(low: index >> 6 == 0 ? bit : 0, high: index >> 6 == 1 ? bit : 0)
    }

    @inlinable package init(arrayLiteral indices: Int...) {
        self.init()
        for index in indices { insert(index) }
    }

    /// Every field that a mask can name.
    @inlinable package static var all: FieldMask { FieldMask(low: .max, high: .max) }

    @inlinable package var isEmpty: Bool { low | high == 0 }

    @inlinable package func contains(_ index: Int) -> Bool { intersects(FieldMask(index)) }

    @inlinable package mutating func insert(_ index: Int) { formUnion(FieldMask(index)) }

    @inlinable package mutating func remove(_ index: Int) { subtract(FieldMask(index)) }

    @inlinable package mutating func formUnion(_ other: FieldMask) {
        low |= other.low
        high |= other.high
    }

    @inlinable package mutating func subtract(_ other: FieldMask) {
        low &= ~other.low
        high &= ~other.high
    }

    @inlinable package func subtracting(_ other: FieldMask) -> FieldMask {
        FieldMask(low: low & ~other.low, high: high & ~other.high)
    }

    @inlinable package func intersects(_ other: FieldMask) -> Bool {
        low & other.low | high & other.high != 0
    }
}
