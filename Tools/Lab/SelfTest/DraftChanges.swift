import CountersignSchemes
import CountersignWire

/// Changes to a signed request. A change that finds nothing to change throws: a request that was not changed
/// proves nothing.
extension Draft {
    var text: String { String(decoding: target, as: UTF8.self) }

    mutating func replace(_ old: String, by new: String, inField name: String) throws(OperationalError) {
        for index in fields.indices where fields[index].isNamed(name) {
            let value = String(decoding: fields[index].value, as: UTF8.self)
            fields[index].value = Array(try value.replacing(old, by: new, in: name).utf8)
            return
        }
        throw OperationalError(.failed, message: "cannot be staged: the request has no field \(name)")
    }

    mutating func replaceInTarget(_ old: String, by new: String) throws(OperationalError) {
        target = Array(try text.replacing(old, by: new, in: "the target").utf8)
    }

    mutating func replaceInBody(_ old: String, by new: String) throws(OperationalError) {
        body = Array(try String(decoding: body, as: UTF8.self).replacing(old, by: new, in: "the body").utf8)
    }

    /// The value of the first field of that name.
    func value(of name: String) -> String? {
        fields.first { $0.isNamed(name) }.map { String(decoding: $0.value, as: UTF8.self) }
    }

    /// The path without its query.
    var path: String { String(text.prefix { $0 != "?" }) }
}

extension String {
    /// Replaces the first occurrence of `old`.
    func replacing(_ old: String, by new: String, in place: String) throws(OperationalError) -> String {
        guard contains(old) else {
            throw OperationalError(.failed, message: "cannot be staged: `\(old)` does not stand in \(place)")
        }
        return replacing(old, with: new, maxReplacements: 1)
    }

    /// The text after `mark`, up to the first character of `ends`.
    func part(after mark: String, upTo ends: Set<Character>) -> String? {
        guard let range = firstRange(of: mark) else { return nil }
        return String(self[range.upperBound...].prefix { !ends.contains($0) })
    }
}

extension Draft {
    /// The text at that place as it is written there; nil where the request has none.
    func part(at place: SchemeLayout.Place) -> String? {
        let text: String?
        switch place {
        case .parameter(let name), .formField(let name):
            let form = String(decoding: body, as: UTF8.self)
            text =
                self.text.parameter(named: name).map { String(self.text[$0]) }
                ?? form.parameter(named: name).map { String(form[$0]) }
        case .field(let name): text = value(of: name)
        case .within(let name, let mark, let ends):
            text = value(of: name)?.part(after: mark, upTo: Set(ends))
        }
        return text.flatMap { $0.isEmpty ? nil : $0 }
    }

    /// Replaces the text at that place, without encoding it.
    mutating func replacePart(at place: SchemeLayout.Place, by new: String) throws(OperationalError) {
        guard let old = part(at: place) else {
            throw OperationalError(.failed, message: "cannot be staged: the request has no \(place.name)")
        }
        switch place {
        case .parameter(let name), .formField(let name):
            var (target, form) = (text, String(decoding: body, as: UTF8.self))
            if let range = target.parameter(named: name) {
                target.replaceSubrange(range, with: new)
                self.target = Array(target.utf8)
            } else if let range = form.parameter(named: name) {
                form.replaceSubrange(range, with: new)
                body = Array(form.utf8)
            }
        case .field(let name): try replace(old, by: new, inField: name)
        case .within(let name, let mark, _):
            try replace("\(mark)\(old)", by: "\(mark)\(new)", inField: name)
        }
    }
}

extension SchemeLayout.Place {
    /// The parameter's or the field's.
    fileprivate var name: String {
        switch self {
        case .parameter(let name), .formField(let name), .field(let name), .within(let name, _, _): name
        }
    }
}

extension String {
    /// The value of the first parameter with that name, in a target or a form.
    fileprivate func parameter(named name: String) -> Range<String.Index>? {
        let pair = split { $0 == "?" || $0 == "&" }.first { $0.hasPrefix("\(name)=") }
        return pair.map { $0.index($0.startIndex, offsetBy: name.count + 1)..<$0.endIndex }
    }
}

extension Draft {
    /// Changes one bit of the signature: in the byte (of a hexadecimal one: the digit) at `index`, counted
    /// around its end.
    mutating func flipSignature(of scheme: SchemeName, at index: Int) throws(OperationalError) {
        let written = try signature(of: scheme)
        switch written.encoding {
        case .byteSequence:
            guard var bytes = Base64.decode(written.text, as: .standard), !bytes.isEmpty else {
                throw Draft.unsigned
            }
            bytes[index % bytes.count] ^= 1
            try replace(written, by: Base64.encode(bytes.span, as: .standard))
        case .hexadecimal:
            var digits = Array(written.text)
            let place = index % digits.count
            guard let digit = digits[place].hexDigitValue else { throw Draft.unsigned }
            digits[place] = Character(String(digit ^ 1, radix: 16))
            try replace(written, by: String(digits))
        }
    }

    /// The signature without its second half.
    mutating func halveSignature(of scheme: SchemeName) throws(OperationalError) {
        let written = try signature(of: scheme)
        try replace(written, by: String(written.text.prefix(written.text.count / 8 * 4)))
    }

    mutating func emptySignature(of scheme: SchemeName) throws(OperationalError) {
        try replace(try signature(of: scheme), by: "")
    }

    /// The same signature under another key id.
    mutating func replaceKeyID(of scheme: SchemeName, by other: String) throws(OperationalError) {
        guard let place = scheme.layout?.keyID.first(where: { part(at: $0) != nil }) else {
            throw OperationalError(.failed, message: "cannot be staged: no key is named")
        }
        try replacePart(at: place, by: other)
    }

    private static let unsigned = OperationalError(
        .failed, message: "cannot be staged: the request has no signature to change")

    private struct WrittenSignature {
        let place: SchemeLayout.Place
        let encoding: SchemeLayout.SignatureEncoding
        /// Base64 without the colons around it, or hexadecimal digits.
        let text: String
    }

    private func signature(of scheme: SchemeName) throws(OperationalError) -> WrittenSignature {
        guard let layout = scheme.layout,
            let place = layout.signature.first(where: { part(at: $0) != nil }), var text = part(at: place)
        else { throw Draft.unsigned }
        if layout.encoding == .byteSequence { text.removeAll { $0 == ":" } }
        guard !text.isEmpty else { throw Draft.unsigned }
        return WrittenSignature(place: place, encoding: layout.encoding, text: text)
    }

    private mutating func replace(_ signature: WrittenSignature, by text: String) throws(OperationalError) {
        let isByteSequence = signature.encoding == .byteSequence
        try replacePart(at: signature.place, by: isByteSequence ? ":\(text):" : text)
    }
}
