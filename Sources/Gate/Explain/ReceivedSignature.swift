import CountersignSchemes
import CountersignWire

/// The signature as the caller wrote it, in each encoding that it may be meant in.
struct ReceivedSignature {
    struct Interpretation {
        var mac: MAC
        /// What was mistaken about the encoding; nil where it is the scheme's.
        var mistake: Cause?
    }

    private(set) var interpretations: [Interpretation] = []
    /// The request with the signature in the scheme's own encoding, so that the rest of it can be read.
    let readable: Draft

    init(in draft: Draft, scheme: SchemeName) {
        guard let layout = scheme.layout,
            let location = CredentialLocation.first(of: layout.signature, in: draft),
            let written = location.read(draft)
        else {
            readable = draft
            return
        }
        interpretations = ReceivedSignature.interpretations(of: written, encoding: layout.encoding)
        if let first = interpretations.first, first.mistake == nil, layout.encoding.takes(first.mac) {
            readable = draft
        } else {
            // One of another length is not read at all; zeros stand for it.
            let count = layout.encoding.macLength
            let mac =
                interpretations.first { $0.mac.count == count }?.mac.array
                ?? [UInt8](repeating: 0, count: count)
            readable = location.write(layout.encoding.encode(mac), in: draft)
        }
    }

    /// Of a key pair's signature also what the claim itself read: it may be longer than a MAC.
    func interpretations(under key: SigningKey, claim: Claim) -> [Interpretation] {
        key.publicKey == nil
            ? interpretations : [Interpretation(mac: claim.mac, mistake: nil)] + interpretations
    }

    private static func interpretations(
        of written: [UInt8], encoding: SchemeLayout.SignatureEncoding
    ) -> [Interpretation] {
        let isBase64 = encoding == .byteSequence
        let text =
            (isBase64 ? written.filter { $0 != UInt8(ascii: ":") && $0 != UInt8(ascii: "\"") } : written)
            .trimmed
        let standard = text.map {
            $0 == UInt8(ascii: "-") ? UInt8(ascii: "+") : $0 == UInt8(ascii: "_") ? .slash : $0
        }
        let bare = standard.filter { $0 != .equals }
        let padded = bare + [UInt8](repeating: .equals, count: (4 - bare.count % 4) % 4)
        let base64 = Base64.decode(padded.span, as: .standard)
        let hex = Hex.decode(text.map(ASCII.lowercased).text)
        var found: [Interpretation] = []
        func add(_ bytes: [UInt8]?, mistake: Cause?) {
            guard let bytes, [16, 20, 32, 48, 64].contains(bytes.count), let mac = MAC(bytes.span) else {
                return
            }
            found.append(Interpretation(mac: mac, mistake: mistake))
        }
        if isBase64 {
            add(hex, mistake: .hexForBase64)
            add(base64, mistake: text == padded ? nil : .otherBase64)
            if let inner = base64 { add(Hex.decode(inner.map(ASCII.lowercased).text), mistake: .base64OfHex) }
        } else {
            add(hex, mistake: text == text.map(ASCII.lowercased) ? nil : .hexCase)
            add(base64, mistake: .base64ForHex)
            if let inner = base64 { add(Hex.decode(inner.map(ASCII.lowercased).text), mistake: .base64OfHex) }
        }
        // The scheme's own reading first: what it makes of the text decides, where both are possible.
        return found.filter { $0.mistake == nil } + found.filter { $0.mistake != nil }
    }
}

extension Cause {
    fileprivate static let hexForBase64 = Cause(
        code: "hex-for-base64",
        sentence: "the signature was sent in hexadecimal digits where Base64 is expected",
        remedy: "encode the bytes of the MAC in Base64")
    fileprivate static let base64ForHex = Cause(
        code: "base64-for-hex",
        sentence: "the signature was sent in Base64 where hexadecimal digits are expected",
        remedy: "write the bytes of the MAC as lower-case hexadecimal digits")
    fileprivate static let base64OfHex = Cause(
        code: "base64-of-hex", sentence: "the signature is the Base64 of hexadecimal digits",
        remedy: "encode the bytes of the MAC, not their hexadecimal text; ask the library for raw output")
    fileprivate static let otherBase64 = Cause(
        code: "base64-variant", sentence: "the signature was sent in base64url, or without its padding",
        remedy: "use the Base64 of RFC 4648 §4: + and /, and = at the end")
    fileprivate static let hexCase = Cause(
        code: "hex-case", sentence: "the signature was sent in upper-case hexadecimal digits",
        remedy: "write the digits in lower case")
}

extension SchemeLayout.SignatureEncoding {
    /// In bytes; that of HMAC-SHA256 where keys of several lengths sign.
    fileprivate var macLength: Int {
        switch self {
        case .byteSequence: 32
        case .hexadecimal(let bytes): bytes
        }
    }

    fileprivate func takes(_ mac: MAC) -> Bool { self == .byteSequence || mac.count == macLength }

    fileprivate func encode(_ mac: [UInt8]) -> [UInt8] {
        switch self {
        case .byteSequence: Array(":\(Base64.encode(mac.span, as: .standard)):".utf8)
        case .hexadecimal: Array(Hex.encode(mac.span).utf8)
        }
    }
}

/// Where a request carries its signature or its key id, found without reading the rest, which may be what is
/// wrong.
struct CredentialLocation: Sendable {
    private let place: SchemeLayout.Place

    /// The text before it in a string to sign that contains it.
    var mark: [UInt8] {
        switch place {
        case .parameter(let name), .formField(let name): [UInt8]("\(name)=")
        case .field: []
        case .within(_, let mark, _): [UInt8](mark)
        }
    }

    /// The first of these places that has a value in the draft.
    static func first(of places: [SchemeLayout.Place], in draft: Draft) -> CredentialLocation? {
        places.lazy.map { CredentialLocation(place: $0) }.first { $0.read(draft) != nil }
    }

    static func signature(of scheme: SchemeName, in draft: Draft) -> CredentialLocation? {
        scheme.layout.flatMap { first(of: $0.signature, in: draft) }
    }

    static func keyID(of scheme: SchemeName, in draft: Draft) -> CredentialLocation? {
        scheme.layout.flatMap { first(of: $0.keyID, in: draft) }
    }

    /// What looks like key ids of those schemes, without the white space around them.
    static func keyIDs(in request: Request, schemes: SchemeRegistry) -> [(SchemeName, KeyID)] {
        let draft = Draft(request)
        return schemes.schemes.compactMap { scheme in
            guard let id = keyID(of: scheme.name, in: draft)?.read(draft).flatMap({ KeyID($0.trimmed.span) })
            else {
                return nil
            }
            return (scheme.name, id)
        }
    }

    /// As it stands there; parameters decoded.
    func read(_ draft: Draft) -> [UInt8]? {
        switch place {
        case .parameter(let name), .formField(let name):
            if let parts = multipart(draft) {
                let part = parts.first { CredentialLocation.isNamed(name, part: $0, of: draft) }
                return part.map { Array(draft.body[$0.content.range]) }
            }
            let text = CredentialLocation.isInBody(draft) ? draft.body : draft.query ?? []
            return CredentialLocation.value(of: [UInt8](name), in: text.span).map {
                PercentEncodingVariants.decode($0, plus: .space)
            }
        case .field(let name): return draft.value(of: name)
        case .within(let name, _, _):
            guard let value = draft.value(of: name), let range = range(in: value) else { return nil }
            return Array(value[range])
        }
    }

    /// Parameters are written encoded.
    func write(_ text: [UInt8], in draft: Draft) -> Draft {
        var changed = draft
        switch place {
        case .parameter(let name), .formField(let name):
            let parts = multipart(draft) ?? []
            if let part = parts.first(where: { CredentialLocation.isNamed(name, part: $0, of: draft) }) {
                changed.body.replaceSubrange(part.content.range, with: text)
                return changed
            }
            var pairs = parameters(of: draft)
            for index in pairs.all.indices where pairs.all[index].name == [UInt8](name) {
                pairs.all[index].value = PercentEncodingVariants.strict(text)
            }
            if CredentialLocation.isInBody(draft) {
                changed.body = pairs.text
            } else {
                changed.target = draft.path + [.question] + pairs.text
            }
        case .field(let name), .within(let name, _, _):
            guard let index = draft.fields.firstIndex(where: { $0.name.lowercased() == name }) else {
                return draft
            }
            let value = draft.fields[index].value
            changed.fields[index].value = text
            if let range = range(in: value) {
                changed.fields[index].value =
                    Array(value[..<range.lowerBound]) + text + Array(value[range.upperBound...])
            }
        }
        return changed
    }

    /// Of the first parameter of that name, as it is written; nil where it has none. Asked of every request
    /// that is refused, so it is looked for where a scheme looks for its names, and no further.
    private static func value(of name: [UInt8], in text: Span<UInt8>) -> [UInt8]? {
        var start = 0
        for _ in 0..<SignatureParameterNames.mostPairs {
            guard start < text.count else { return nil }
            let end = text.firstIndex(of: .ampersand, from: start) ?? text.count
            let mark = start + name.count
            if mark <= end, text.extracting(start..<mark).matches(name.span),
                mark == end || text[mark] == .equals
            {
                guard mark < end else { return nil }
                return text.extracting(mark + 1..<end).withUnsafeBufferPointer { Array($0) }
            }
            start = end + 1
        }
        return nil
    }

    private func parameters(of draft: Draft) -> QueryPairs {
        QueryPairs(CredentialLocation.isInBody(draft) ? draft.body : draft.query ?? [])
    }

    /// The parts of a multipart body. Nil if the place is not in one, or if there is no such body, or if it
    /// cannot be read or is too large to be examined.
    private func multipart(_ draft: Draft) -> [Multipart.Part]? {
        guard case .formField = place, draft.mediaType == "multipart/form-data",
            draft.body.count <= ExplanationBudget.largestBody, let type = draft.value(of: "content-type"),
            let boundary = Multipart.Boundary(contentType: type.span)
        else { return nil }
        return try? Multipart.read(draft.body.span, between: boundary)
    }

    private static func isNamed(_ name: String, part: Multipart.Part, of draft: Draft) -> Bool {
        part.kind == .field && draft.body[part.name.range].elementsEqual(name.utf8)
    }

    /// A compressed body has no parameters before it is inflated.
    private static func isInBody(_ draft: Draft) -> Bool {
        draft.isForm && !draft.body.isEmpty && draft.value(of: "content-encoding") == nil
    }

    private func range(in value: [UInt8]) -> Range<Int>? {
        // Not with the standard library's search, at some 50 ns a byte: a stranger's field may have 60,000.
        guard case .within(_, let mark, let ends) = place,
            let at = value.span.firstIndex(of: [UInt8](mark).span)
        else {
            return nil
        }
        let start = at + mark.utf8.count
        let end = value[start...].firstIndex { ends.utf8.contains($0) } ?? value.endIndex
        return start..<end
    }
}
