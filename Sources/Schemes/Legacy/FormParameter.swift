import CountersignWire

/// A form parameter: by its place in the form, and once decoded by its place in `Workspace.decoded`.
struct FormParameter: BitwiseCopyable {
    var name: Slice
    var value: Slice
    /// The name in full where `name` is only what it is sorted by: without `[]`, in lower case.
    var written = Slice.empty
    let spelling: Form.Spelling
    /// The decoded name's first eight bytes, big-endian, zeros after its end: names mostly differ in these, and compare
    /// as bytes do.
    var prefix: UInt64 = 0

    init(name: Slice, value: Slice, spelling: Form.Spelling) {
        self.name = name
        self.value = value
        self.spelling = spelling
    }

    /// `decoded` begins with a copy of `text`, where what is plain stays; what is escaped is decoded behind it.
    mutating func decode(_ text: Span<UInt8>, into decoded: inout ByteBuffer) throws(Form.Problem) {
        if spelling == .escaped {
            name = try Form.decode(name, of: text, into: &decoded)
            value = try Form.decode(value, of: text, into: &decoded)
        }
        prefix = FormParameter.prefix(of: decoded.span.extracting(name.range))
    }

    static func prefix(of name: borrowing Span<UInt8>) -> UInt64 {
        var prefix: UInt64 = 0
        for index in 0..<min(name.count, 8) { prefix = prefix << 8 | UInt64(name[index]) }
        return name.count < 8 ? prefix << UInt64(8 * (8 - name.count)) : prefix
    }
}
