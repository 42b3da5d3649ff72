/// Where the parts of a certificate stand in its bytes. Source: RFC 5280 §4.1.
struct CertificateParts {
    private(set) var issuer = 0..<0
    private(set) var subject = 0..<0
    private(set) var publicKeyInfo = 0..<0
    private(set) var names: [Trust.Certificate.Name] = []

    /// Nil where the bytes are no certificate, or more than one.
    init?(_ bytes: [UInt8]) {
        var text = DER(bytes)
        guard var certificate = text.enter(DER.Tag.sequence), text.isAtEnd,
            var signed = certificate.enter(DER.Tag.sequence),
            certificate.next(DER.Tag.sequence) != nil, certificate.next(DER.Tag.bitString) != nil, certificate.isAtEnd
        else { return nil }
        if signed.nextTag == DER.Tag.context(0) { _ = signed.next() }
        guard signed.next(DER.Tag.integer) != nil, signed.next(DER.Tag.sequence) != nil,
            let issuer = signed.next(DER.Tag.sequence), signed.next(DER.Tag.sequence) != nil,
            let subject = signed.next(DER.Tag.sequence), let key = signed.next(DER.Tag.sequence)
        else { return nil }
        (self.issuer, self.subject, publicKeyInfo) = (issuer.whole, subject.whole, key.whole)
        // Unique identifiers, which nobody uses, may come before the extensions.
        while let element = signed.next() {
            guard element.tag == DER.Tag.context(3) else { continue }
            guard let names = CertificateParts.names(bytes, in: element.content) else { return nil }
            self.names = names
        }
        guard signed.isAtEnd else { return nil }
    }

    /// id-ce-subjectAltName, 2.5.29.17.
    private static let alternativeName: [UInt8] = [0x55, 0x1D, 0x11]

    /// Nil where the extensions are not well formed, or name the alternative names twice: which of them would count?
    private static func names(_ bytes: [UInt8], in range: Range<Int>) -> [Trust.Certificate.Name]? {
        var outer = DER(bytes, in: range)
        guard var extensions = outer.enter(DER.Tag.sequence), outer.isAtEnd else { return nil }
        var names: [Trust.Certificate.Name]?
        while !extensions.isAtEnd {
            guard var item = extensions.enter(DER.Tag.sequence), let kind = item.next(DER.Tag.objectIdentifier) else {
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

    private static func alternativeNames(_ bytes: [UInt8], in range: Range<Int>) -> [Trust.Certificate.Name]? {
        var outer = DER(bytes, in: range)
        guard var list = outer.enter(DER.Tag.sequence), outer.isAtEnd else { return nil }
        var names: [Trust.Certificate.Name] = []
        while !list.isAtEnd {
            guard let name = list.next() else { return nil }
            let content = Array(bytes[name.content])
            switch name.tag {
            // dNSName [2] IA5String: a NUL in one has fooled readers before, and a name of a host has none.
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
