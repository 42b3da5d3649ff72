/// Reads what a DER text is made of, one element after the other: definite lengths in their shortest form, tags of one
/// byte, nothing that goes beyond its container. Total: any bytes give elements or nil. Source: X.690 §8.1, §10.1.
struct DER {
    enum Tag {
        static let boolean: UInt8 = 0x01
        static let integer: UInt8 = 0x02
        static let bitString: UInt8 = 0x03
        static let octetString: UInt8 = 0x04
        static let objectIdentifier: UInt8 = 0x06
        static let sequence: UInt8 = 0x30

        /// `[n]`, holding other elements.
        static func context(_ number: UInt8) -> UInt8 { 0xA0 | number }
    }

    struct Element {
        var tag: UInt8
        /// Tag and length included.
        var whole: Range<Int>
        var content: Range<Int>
    }

    private let bytes: [UInt8]
    private var position: Int
    private let end: Int

    init(_ bytes: [UInt8]) { self.init(bytes, in: bytes.indices) }

    init(_ bytes: [UInt8], in range: Range<Int>) {
        self.bytes = bytes
        position = range.lowerBound
        end = range.upperBound
    }

    var isAtEnd: Bool { position == end }

    /// The tag of the element that comes next.
    var nextTag: UInt8? { position < end ? bytes[position] : nil }

    /// The next element, whatever it is; nil where there is none, or none that is well formed.
    mutating func next() -> Element? {
        let start = position
        guard end - start >= 2, bytes[start] & 0x1F != 0x1F else { return nil }
        let first = bytes[start + 1]
        var length = Int(first)
        var header = 2
        if first >= 0x80 {
            let count = Int(first & 0x7F)
            guard (1...4).contains(count), end - start >= 2 + count else { return nil }
            length = bytes[(start + 2)..<(start + 2 + count)].reduce(0) { $0 << 8 | Int($1) }
            // A shorter form would have done.
            guard length >= 0x80, bytes[start + 2] != 0 else { return nil }
            header += count
        }
        guard length <= end - start - header else { return nil }
        position = start + header + length
        return Element(tag: bytes[start], whole: start..<position, content: (start + header)..<position)
    }

    /// The next element, where it has that tag.
    mutating func next(_ tag: UInt8) -> Element? {
        guard nextTag == tag else { return nil }
        return next()
    }

    /// The inside of the next element, where it has that tag.
    mutating func enter(_ tag: UInt8) -> DER? {
        guard let element = next(tag) else { return nil }
        return DER(bytes, in: element.content)
    }
}
