import CountersignSodium

/// Reads and writes one key as text. Source: RFC 7468 §3, in the strict form of its figure 3, with lines that
/// end in LF or CRLF.
package enum PEM {
    package enum Kind: String, Sendable, CaseIterable {
        /// SubjectPublicKeyInfo. Source: RFC 7468 §13.
        case publicKey = "PUBLIC KEY"
        /// PKCS #8, unencrypted. Source: RFC 7468 §10.
        case privateKey = "PRIVATE KEY"
    }

    /// The longest text that is read, in bytes; a 4096-bit RSA key takes 3.3 kB.
    package static let longest = 16_384

    /// The decoded DER, which is secret if the kind is. Text before or after the block, or a second key, is
    /// refused as ambiguous.
    package static func read(_ text: Span<UInt8>) throws(SealError) -> (kind: Kind, der: Secret) {
        guard text.count <= longest else {
            throw SealError.unusableKey(expected: "a PEM file of at most \(longest) bytes")
        }
        for kind in Kind.allCases {
            guard let body = body(of: text, kind: kind) else { continue }
            guard let der = decode(text.extracting(body)) else {
                throw SealError.unusableKey(expected: "Base64 between the lines of the PEM file")
            }
            return (kind, der)
        }
        throw SealError.unusableKey(
            expected: "one PEM block, PUBLIC KEY (SPKI) or PRIVATE KEY (PKCS #8), and nothing else")
    }

    /// Whether the text begins like PEM, well formed or not.
    package static func looksLike(_ text: Span<UInt8>) -> Bool {
        text.count >= 11 && hasPrefix(text, part: Array("-----BEGIN ".utf8), at: 0)
    }

    /// Encodes a key as text.
    static func write(_ der: Span<UInt8>, kind: Kind) -> Secret {
        let variant = sodium_base64_VARIANT_ORIGINAL
        var letters = [CChar](repeating: 0, count: sodium_base64_encoded_len(der.count, variant))
        var text: [UInt8] = []
        // If the array grew later, it would leave a copy behind.
        text.reserveCapacity(letters.count * 66 / 64 + 128)
        defer {
            letters.withUnsafeMutableBytes { sodium_memzero($0.baseAddress, $0.count) }
            text.withUnsafeMutableBytes { sodium_memzero($0.baseAddress, $0.count) }
        }
        let room = letters.count
        der.withUnsafeBytes { bytes in
            _ = sodium_bin2base64(
                &letters, room, bytes.bindMemory(to: UInt8.self).baseAddress, bytes.count, variant)
        }
        text += "-----BEGIN \(kind.rawValue)-----\n".utf8
        for index in 0..<(room - 1) {
            if index > 0, index.isMultiple(of: 64) { text.append(0x0A) }
            text.append(UInt8(bitPattern: letters[index]))
        }
        text += "\n-----END \(kind.rawValue)-----\n".utf8
        return Secret(copying: text.span)
    }

    private static func body(of text: Span<UInt8>, kind: Kind) -> Range<Int>? {
        let begin = Array("-----BEGIN \(kind.rawValue)-----".utf8)
        let end = Array("-----END \(kind.rawValue)-----".utf8)
        var stop = text.count
        while stop > 0, isSpace(text[stop - 1]) { stop -= 1 }
        guard stop >= begin.count + end.count, hasPrefix(text, part: begin, at: 0) else { return nil }
        guard hasPrefix(text, part: end, at: stop - end.count) else { return nil }
        let body = begin.count..<(stop - end.count)
        guard let first = body.first, let last = body.last, isSpace(text[first]), text[last] == 0x0A else {
            return nil
        }
        return body
    }

    private static func decode(_ text: Span<UInt8>) -> Secret? {
        var bytes = [UInt8](repeating: 0, count: text.count)
        defer { bytes.withUnsafeMutableBytes { sodium_memzero($0.baseAddress, $0.count) } }
        var length = 0
        let room = bytes.count
        let status = text.withUnsafeBytes { text in
            sodium_base642bin(
                &bytes, room, text.bindMemory(to: CChar.self).baseAddress, text.count, "\r\n", &length, nil,
                sodium_base64_VARIANT_ORIGINAL)
        }
        guard status == 0, length > 0 else { return nil }
        return Secret(copying: bytes.span.extracting(0..<length))
    }

    private static func hasPrefix(_ text: Span<UInt8>, part: [UInt8], at start: Int) -> Bool {
        guard start >= 0, text.count - start >= part.count else { return false }
        return part.indices.allSatisfy { text[start + $0] == part[$0] }
    }

    private static func isSpace(_ byte: UInt8) -> Bool { byte == 0x0A || byte == 0x0D }
}
