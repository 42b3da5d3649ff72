import CountersignSodium

/// The 32 bytes that seal every secret the authority keeps. Never in the database.
package final class MasterKey: Sendable {
    package static let count = Int(crypto_aead_xchacha20poly1305_ietf_KEYBYTES)

    let key: Secret
    /// Eight bytes that name this key without telling anything about it: a keyed hash of a fixed text.
    package let id: [UInt8]

    /// Nil where `secret` is not 32 bytes.
    package init?(_ secret: Secret) {
        guard secret.count == MasterKey.count, sodium_init() >= 0 else { return nil }
        key = secret
        var digest = [UInt8](repeating: 0, count: 32)
        let label = Array("countersign/1 master key id".utf8)
        let length = digest.count
        secret.withPointer { key in
            _ = crypto_generichash(&digest, length, label, UInt64(label.count), key, secret.count)
        }
        id = Array(digest.prefix(8))
    }

    package static func random() -> Secret { Secret(random: count) }

    /// The key from its text: 64 hexadecimal digits, or 43 characters of base64url (one `=` of padding allowed).
    /// Nil for anything else. libsodium's decoders run in constant time, as a key deserves.
    package convenience init?(text: Span<UInt8>) {
        guard let secret = MasterKey.decode(text) else { return nil }
        self.init(secret)
    }

    /// The text that `init(text:)` reads, in base64url, for the file that keeps it.
    package func text() -> Secret {
        let variant = sodium_base64_VARIANT_URLSAFE_NO_PADDING
        let length = sodium_base64_encoded_len(MasterKey.count, variant)
        var text = [CChar](repeating: 0, count: length)
        defer { text.withUnsafeMutableBytes { sodium_memzero($0.baseAddress, $0.count) } }
        key.withPointer { _ = sodium_bin2base64(&text, length, $0, MasterKey.count, variant) }
        return text.withUnsafeBytes { text in
            Secret(copying: Span(_unsafeBytes: UnsafeRawBufferPointer(rebasing: text.dropLast())))
        }
    }

    private static func decode(_ text: Span<UInt8>) -> Secret? {
        guard text.count <= 64 else { return nil }
        var bytes = [UInt8](repeating: 0, count: 64)
        defer { bytes.withUnsafeMutableBytes { sodium_memzero($0.baseAddress, $0.count) } }
        var decoded = 0
        let verdict = text.withUnsafeBytes { text -> CInt in
            let start = text.bindMemory(to: CChar.self).baseAddress
            switch text.count {
            case 64: return sodium_hex2bin(&bytes, count, start, text.count, nil, &decoded, nil)
            case 43:
                let variant = sodium_base64_VARIANT_URLSAFE_NO_PADDING
                return sodium_base642bin(&bytes, count, start, text.count, nil, &decoded, nil, variant)
            case 44:
                let variant = sodium_base64_VARIANT_URLSAFE
                return sodium_base642bin(&bytes, count, start, text.count, nil, &decoded, nil, variant)
            default: return -1
            }
        }
        guard verdict == 0, decoded == count else { return nil }
        return Secret(copying: bytes.span.extracting(0..<count))
    }
}
