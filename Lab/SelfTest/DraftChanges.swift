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
    /// Changes one bit of the signature: in the byte (of a hexadecimal one: the digit) at `index`, counted
    /// around its end.
    mutating func flipSignature(of scheme: SchemeName, at index: Int) throws(OperationalError) {
        switch scheme {
        case .messageSignatures:
            guard let text = value(of: "Signature")?.part(after: "app=:", upTo: [":"]),
                var bytes = Base64.decode(text, as: .standard), !bytes.isEmpty
            else { throw Draft.unsigned }
            bytes[index % bytes.count] ^= 1
            setField("Signature", to: "app=:\(Base64.encode(bytes.span, as: .standard)):")
        default:
            let old = try signature(of: scheme)
            var digits = Array(old)
            let place = index % digits.count
            guard let digit = digits[place].hexDigitValue else { throw Draft.unsigned }
            digits[place] = Character(String(digit ^ 1, radix: 16))
            try replaceSignature(old, by: String(digits), of: scheme)
        }
    }

    /// The signature without its second half.
    mutating func halveSignature(of scheme: SchemeName) throws(OperationalError) {
        let old = try signature(of: scheme)
        try replaceSignature(old, by: String(old.prefix(old.count / 8 * 4)), of: scheme)
    }

    mutating func emptySignature(of scheme: SchemeName) throws(OperationalError) {
        try replaceSignature(try signature(of: scheme), by: "", of: scheme)
    }

    private static let unsigned = OperationalError(
        .failed, message: "cannot be staged: the request has no signature to change")

    /// The signature's text, in Base64 or hexadecimal digits.
    private func signature(of scheme: SchemeName) throws(OperationalError) -> String {
        let place: String?
        switch scheme {
        case .messageSignatures: place = value(of: "Signature")?.part(after: "app=:", upTo: [":"])
        case .sigV4: place = value(of: "Authorization")?.part(after: "Signature=", upTo: [","])
        case .authV4: place = value(of: "X-Auth-Signature")
        case .formMD5:
            place = (text + "&" + String(decoding: body, as: UTF8.self)).part(after: "&sign=", upTo: ["&"])
        case .authV1, .authV2: place = text.part(after: "auth_signature=", upTo: ["&"])
        case .token: place = nil
        }
        guard let place, !place.isEmpty else { throw Draft.unsigned }
        return place
    }

    private mutating func replaceSignature(_ old: String, by new: String, of scheme: SchemeName)
        throws(OperationalError)
    {
        switch scheme {
        case .messageSignatures: try replace(":\(old):", by: ":\(new):", inField: "Signature")
        case .sigV4: try replace("Signature=\(old)", by: "Signature=\(new)", inField: "Authorization")
        case .authV4: try replace(old, by: new, inField: "X-Auth-Signature")
        case .formMD5:
            if text.contains("sign=\(old)") {
                try replaceInTarget("sign=\(old)", by: "sign=\(new)")
            } else {
                try replaceInBody("sign=\(old)", by: "sign=\(new)")
            }
        case .authV1, .authV2: try replaceInTarget("auth_signature=\(old)", by: "auth_signature=\(new)")
        case .token: throw Draft.unsigned
        }
    }
}

/// Valid signatures that cover too little, as no Countersign client makes them.
extension Draft {
    /// Signs what the present `Signature-Input` lists, whatever it leaves out: message-signatures.
    mutating func resign(as subject: SelfTestSubject) throws(OperationalError) {
        setField("Signature", to: "app=::")
        do throws(Refusal) {
            let request = request()
            let scheme = MessageSignatures()
            var workspace = Workspace()
            guard let claim = try scheme.claim(in: request, workspace: &workspace) else {
                throw Refusal(.unsigned)
            }
            try scheme.writeStringToSign(for: claim, of: request, into: &workspace)
            let signature = try subject.credentials.key.sign(workspace.text)
            setField("Signature", to: "app=:\(Base64.encode(signature.span, as: .standard)):")
        } catch {
            throw OperationalError(.failed, message: "cannot be staged: \(error.detail)")
        }
    }

    /// Signs a form with form-md5, without one of its parameters. Source: docs/protocol.md, "form-md5".
    mutating func resign(as credentials: Credentials, without name: String) throws(OperationalError) {
        let form = String(decoding: body, as: UTF8.self).split(separator: "&")
        let kept = form.filter { !$0.hasPrefix("\(name)=") && !$0.hasPrefix("sign=") }
        guard kept.count == form.count - 2 else {
            throw OperationalError(.failed, message: "cannot be staged: no \(name) in the form")
        }
        if credentials.formMD5Key == .appended {
            let text = Array(kept.sorted().joined(separator: "&").utf8)
            return sign(kept, as: credentials, over: StringToSign(text, secretAt: text.count))
        }
        // No parameter of the draft contains a character that would have to be decoded first, and comparing
        // whole pairs with `private_key` orders them by name.
        let before = kept.filter { $0 < "private_key" }.sorted() + ["private_key="]
        let after = kept.filter { $0 > "private_key" }.sorted()
        let text = before.joined(separator: "&")
        let whole = text + after.map { "&\($0)" }.joined()
        sign(kept, as: credentials, over: StringToSign(Array(whole.utf8), secretAt: text.utf8.count))
    }

    private mutating func sign(
        _ form: [Substring], as credentials: Credentials, over text: borrowing StringToSign
    ) {
        let mac = credentials.key.mac(.md5OverSecret, of: text)
        body = Array((form.joined(separator: "&") + "&sign=\(Hex.encode(mac.span))").utf8)
    }
}
