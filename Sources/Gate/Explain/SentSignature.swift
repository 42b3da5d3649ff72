import CountersignSchemes
import CountersignWire

/// The signature as the caller wrote it, in each encoding that it may be meant in.
struct SentSignature {
    struct Reading {
        var mac: MAC
        /// What was mistaken about the encoding; nil where it is the scheme's.
        var mistake: Cause?
    }

    private(set) var readings: [Reading] = []
    /// The request with the signature in the scheme's own encoding, so that the rest of it can be read.
    let readable: Draft

    init(_ draft: Draft, _ scheme: SchemeName) {
        guard let place = SentPlace.signature(of: scheme, in: draft), let written = place.read(draft) else {
            readable = draft
            return
        }
        let isBase64 = scheme == .messageSignatures
        let text = isBase64 ? written.filter { $0 != UInt8(ascii: ":") && $0 != UInt8(ascii: "\"") } : written
        readings = SentSignature.readings(of: text.trimmed, isBase64: isBase64)
        let length = scheme == .formMD5 ? 16 : 32
        let isRight = readings.first.map { $0.mistake == nil && (isBase64 || $0.mac.count == length) } ?? false
        if isRight, isBase64 || text == written {
            readable = draft
        } else {
            // One of another length is not read at all; zeros stand for it.
            let mac = readings.first { $0.mac.count == length }?.mac.array ?? [UInt8](repeating: 0, count: length)
            let spelled = isBase64 ? ":\(Base64.encode(mac.span, .standard)):" : Hex.encode(mac.span)
            readable = place.write([UInt8](spelled), in: draft)
        }
    }

    /// Of a key pair's signature also what the claim itself read: it may be longer than a MAC.
    func readings(under key: SigningKey, _ claim: Claim) -> [Reading] {
        key.publicKey == nil ? readings : [Reading(mac: claim.mac, mistake: nil)] + readings
    }

    private static func readings(of text: [UInt8], isBase64: Bool) -> [Reading] {
        let standard = text.map { $0 == UInt8(ascii: "-") ? UInt8(ascii: "+") : $0 == UInt8(ascii: "_") ? .slash : $0 }
        let bare = standard.filter { $0 != .equals }
        let padded = bare + [UInt8](repeating: .equals, count: (4 - bare.count % 4) % 4)
        let base64 = Base64.decode(padded.span, .standard)
        let hex = Hex.decode(text.map(ASCII.lowercased).text)
        var found: [Reading] = []
        func add(_ bytes: [UInt8]?, _ mistake: Cause?) {
            guard let bytes, [16, 20, 32, 48, 64].contains(bytes.count), let mac = MAC(bytes.span) else { return }
            found.append(Reading(mac: mac, mistake: mistake))
        }
        if isBase64 {
            add(hex, .hexForBase64)
            add(base64, text == padded ? nil : .otherBase64)
            if let inner = base64 { add(Hex.decode(inner.map(ASCII.lowercased).text), .base64OfHex) }
        } else {
            add(hex, text == text.map(ASCII.lowercased) ? nil : .hexCase)
            add(base64, .base64ForHex)
            if let inner = base64 { add(Hex.decode(inner.map(ASCII.lowercased).text), .base64OfHex) }
        }
        // The scheme's own reading first: what it makes of the text decides, where both are possible.
        return found.filter { $0.mistake == nil } + found.filter { $0.mistake != nil }
    }
}

extension Cause {
    fileprivate static let hexForBase64 = Cause(
        "hex-for-base64", "the signature was sent in hexadecimal digits where Base64 is expected",
        "encode the bytes of the MAC in Base64")
    fileprivate static let base64ForHex = Cause(
        "base64-for-hex", "the signature was sent in Base64 where hexadecimal digits are expected",
        "write the bytes of the MAC as lower-case hexadecimal digits")
    fileprivate static let base64OfHex = Cause(
        "base64-of-hex", "the signature is the Base64 of hexadecimal digits",
        "encode the bytes of the MAC, not their hexadecimal text; ask the library for raw output")
    fileprivate static let otherBase64 = Cause(
        "base64-variant", "the signature was sent in base64url, or without its padding",
        "use the Base64 of RFC 4648 §4: + and /, and = at the end")
    fileprivate static let hexCase = Cause(
        "hex-case", "the signature was sent in upper-case hexadecimal digits", "write the digits in lower case")
}
