import CountersignWire

/// A form parameter: by its place in the form, and once decoded by its place in `Workspace.decoded`.
struct FormParameter: BitwiseCopyable {
    var name: Slice
    var value: Slice
    let spelling: Form.Spelling
    /// The decoded name's first eight bytes, big-endian, zeros after its end: names mostly differ in these, and compare
    /// as bytes do.
    var prefix: UInt64 = 0

    init(name: Slice, value: Slice, spelling: Form.Spelling) {
        self.name = name
        self.value = value
        self.spelling = spelling
    }

    mutating func decode(_ text: Span<UInt8>, into decoded: inout ByteBuffer) throws(Form.Problem) {
        name = try Form.decode(name, spelling, of: text, into: &decoded)
        value = try Form.decode(value, spelling, of: text, into: &decoded)
        let bytes = decoded.span.extracting(name.range)
        for index in 0..<min(bytes.count, 8) { prefix |= UInt64(bytes[index]) << UInt64(56 - 8 * index) }
    }
}
