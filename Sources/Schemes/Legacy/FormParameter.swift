import CountersignWire

/// A form parameter by its place in `Workspace.decoded`.
struct FormParameter: BitwiseCopyable {
    var name: Slice
    var value: Slice
    /// The name's first eight bytes, big-endian, zeros after its end: names mostly differ in these, and compare as
    /// bytes do.
    var prefix: UInt64

    init(name: Slice, value: Slice, _ text: borrowing Span<UInt8>) {
        self.name = name
        self.value = value
        prefix = 0
        let bytes = text.extracting(name.range)
        for index in 0..<8 { prefix = prefix << 8 | UInt64(index < bytes.count ? bytes[index] : 0) }
    }
}
