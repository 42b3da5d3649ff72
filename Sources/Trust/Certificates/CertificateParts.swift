/// The positions of a certificate's parts in its bytes. Source: RFC 5280 §4.1.
struct CertificateParts {
    private(set) var issuer = 0..<0
    private(set) var subject = 0..<0
    private(set) var publicKeyInfo = 0..<0
    private(set) var names: [Trust.Certificate.Name] = []

    /// Nil if the bytes are not exactly one certificate.
    init?(_ bytes: [UInt8]) {
        var text = DER(bytes)
        guard var certificate = text.enter(DER.Tag.sequence), text.isAtEnd,
            var signed = certificate.enter(DER.Tag.sequence),
            certificate.next(DER.Tag.sequence) != nil, certificate.next(DER.Tag.bitString) != nil,
            certificate.isAtEnd
        else { return nil }
        if signed.nextTag == DER.Tag.context(0) { _ = signed.next() }
        guard signed.next(DER.Tag.integer) != nil, signed.next(DER.Tag.sequence) != nil,
            let issuer = signed.next(DER.Tag.sequence), signed.next(DER.Tag.sequence) != nil,
            let subject = signed.next(DER.Tag.sequence), let key = signed.next(DER.Tag.sequence)
        else { return nil }
        (self.issuer, self.subject, publicKeyInfo) = (issuer.whole, subject.whole, key.whole)
        // Unique identifiers, which are not used in practice, may come before the extensions.
        while let element = signed.next() {
            guard element.tag == DER.Tag.context(3) else { continue }
            guard let names = CertificateParts.names(bytes, in: element.content) else { return nil }
            self.names = names
        }
        guard signed.isAtEnd else { return nil }
    }

    /// id-ce-subjectAltName, 2.5.29.17.
    private static let alternativeName: [UInt8] = [0x55, 0x1D, 0x11]

    /// Nil if the extensions are malformed, or contain the alternative names twice, which would be ambiguous.
    private static func names(_ bytes: [UInt8], in range: Range<Int>) -> [Trust.Certificate.Name]? {
        var outer = DER(bytes, in: range)
        guard var extensions = outer.enter(DER.Tag.sequence), outer.isAtEnd else { return nil }
        var names: [Trust.Certificate.Name]?
        while !extensions.isAtEnd {
            guard var item = extensions.enter(DER.Tag.sequence),
                let kind = item.next(DER.Tag.objectIdentifier)
            else {
                return nil
            }
            if item.nextTag == DER.Tag.boolean { _ = item.next() }
            guard let value = item.next(DER.Tag.octetString), item.isAtEnd else { return nil }
            guard bytes[kind.content].elementsEqual(alternativeName) else { continue }
            guard names == nil, let read = alternativeNames(bytes, in: value.content) else { return nil }
            names = read
        }
        return names ?? []
    }

    private static func alternativeNames(_ bytes: [UInt8], in range: Range<Int>) -> [Trust.Certificate.Name]?
    {
        var outer = DER(bytes, in: range)
        guard var list = outer.enter(DER.Tag.sequence), outer.isAtEnd else { return nil }
        var names: [Trust.Certificate.Name] = []
        while !list.isAtEnd {
            guard let name = list.next() else { return nil }
            let content = Array(bytes[name.content])
            switch name.tag {
            // dNSName [2] IA5String. A NUL is refused: it has misled parsers, and no host name contains one.
            case 0x82 where content.allSatisfy({ (0x21...0x7E).contains($0) }):
                names.append(.dns(String(decoding: content, as: UTF8.self)))
            // iPAddress [7] OCTET STRING.
            case 0x87 where content.count == 4 || content.count == 16: names.append(.address(content))
            default: continue
            }
        }
        return names
    }
}

/// Reads the elements of a DER text in sequence: definite lengths in their shortest form, tags of one byte,
/// no element beyond its container. Total: any bytes give elements or nil. Source:
/// X.690 §8.1, §10.1.
struct DER {
    enum Tag {
        static let boolean: UInt8 = 0x01
        static let integer: UInt8 = 0x02
        static let bitString: UInt8 = 0x03
        static let octetString: UInt8 = 0x04
        static let objectIdentifier: UInt8 = 0x06
        static let sequence: UInt8 = 0x30

        /// `[n]`, constructed.
        static func context(_ number: UInt8) -> UInt8 { 0xA0 | number }
    }

    struct Element {
        var tag: UInt8
        /// The element's bytes with tag and length.
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

    /// The tag of the next element.
    var nextTag: UInt8? { position < end ? bytes[position] : nil }

    /// The next element, whatever its tag; nil if there is none, or if it is malformed.
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
            // Not the shortest form.
            guard length >= 0x80, bytes[start + 2] != 0 else { return nil }
            header += count
        }
        guard length <= end - start - header else { return nil }
        position = start + header + length
        return Element(tag: bytes[start], whole: start..<position, content: (start + header)..<position)
    }

    /// The next element, if it has that tag.
    mutating func next(_ tag: UInt8) -> Element? {
        guard nextTag == tag else { return nil }
        return next()
    }

    /// The contents of the next element, if it has that tag.
    mutating func enter(_ tag: UInt8) -> DER? {
        guard let element = next(tag) else { return nil }
        return DER(bytes, in: element.content)
    }
}
