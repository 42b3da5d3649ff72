import CountersignSchemes
import CountersignWire

extension Draft {
    /// Changes one bit of the signature: in the byte (of a hexadecimal one: the digit) at `index`, counted around its end.
    mutating func flipSignature(of scheme: SchemeName, at index: Int) throws(Fault) {
        switch scheme {
        case .messageSignatures:
            guard let text = value(of: "Signature")?.part(after: "app=:", upTo: [":"]),
                var bytes = Base64.decode(text, .standard), !bytes.isEmpty
            else { throw Draft.unsigned }
            bytes[index % bytes.count] ^= 1
            set("Signature", "app=:\(Base64.encode(bytes.span, .standard)):")
        default:
            let old = try signature(of: scheme)
            var digits = Array(old)
            let place = index % digits.count
            guard let digit = digits[place].hexDigitValue else { throw Draft.unsigned }
            digits[place] = Character(String(digit ^ 1, radix: 16))
            try replaceSignature(old, by: String(digits), scheme)
        }
    }

    /// The signature without its second half.
    mutating func halveSignature(of scheme: SchemeName) throws(Fault) {
        let old = try signature(of: scheme)
        try replaceSignature(old, by: String(old.prefix(old.count / 8 * 4)), scheme)
    }

    mutating func emptySignature(of scheme: SchemeName) throws(Fault) {
        try replaceSignature(try signature(of: scheme), by: "", scheme)
    }

    private static let unsigned = Fault(.failed, "cannot be staged: the request has no signature to change")

    /// As it is written, in Base64 or hexadecimal digits.
    private func signature(of scheme: SchemeName) throws(Fault) -> String {
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

    private mutating func replaceSignature(_ old: String, by new: String, _ scheme: SchemeName) throws(Fault) {
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
