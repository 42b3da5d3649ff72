import CCrypto

/// Opens one side's records, in their order.
struct RecordCipher {
    enum Version {
        case tls12
        case tls13
    }

    let cipher: CipherSuite.Cipher
    let version: Version
    let key: [UInt8]
    /// What of the nonce is fixed.
    let salt: [UInt8]
    private var sequence: UInt64 = 0

    init(_ cipher: CipherSuite.Cipher, _ version: Version, key: [UInt8], salt: [UInt8]) {
        (self.cipher, self.version, self.key, self.salt) = (cipher, version, key, salt)
    }

    /// What stands in the next record, and of which kind it is; nil where the tag does not hold: another key, or a changed record.
    mutating func open(_ record: TLSRecord) -> (kind: TLSRecord.Kind, bytes: [UInt8])? {
        let number = (0..<8).map { UInt8(truncatingIfNeeded: sequence >> (56 - 8 * UInt64($0))) }
        var (nonce, sealed) = (salt, record.payload)
        if salt.count == 12 {
            for index in 0..<8 { nonce[4 + index] ^= number[index] }
        } else {
            guard sealed.count >= 8 else { return nil }
            nonce += sealed.prefix(8)
            sealed.removeFirst(8)
        }
        guard sealed.count >= 16 else { return nil }
        // Source: RFC 5246 §6.2.3.3, RFC 8446 §5.2.
        let head = [record.kind.rawValue, UInt8(record.version >> 8), UInt8(record.version & 255)]
        let length = version == .tls12 ? sealed.count - 16 : sealed.count
        let counted = head + [UInt8(length >> 8), UInt8(length & 255)]
        guard let opened = decrypt(sealed, nonce, authenticated: version == .tls12 ? number + counted : counted) else {
            return nil
        }
        sequence += 1
        guard version == .tls13 else { return (record.kind, opened) }
        // The kind stands at the end, before padding. Source: RFC 8446 §5.4.
        guard let last = opened.lastIndex(where: { $0 != 0 }), let kind = TLSRecord.Kind(rawValue: opened[last]) else {
            return nil
        }
        return (kind, Array(opened[..<last]))
    }

    private func decrypt(_ sealed: [UInt8], _ nonce: [UInt8], authenticated: [UInt8]) -> [UInt8]? {
        let kind =
            switch cipher {
            case .aes128GCM: EVP_aes_128_gcm()
            case .aes256GCM: EVP_aes_256_gcm()
            case .chaCha20Poly1305: EVP_chacha20_poly1305()
            }
        guard let context = EVP_CIPHER_CTX_new() else { return nil }
        defer { EVP_CIPHER_CTX_free(context) }
        var tag = Array(sealed.suffix(16))
        let text = Array(sealed.dropLast(16))
        var opened = [UInt8](repeating: 0, count: text.count + 16)
        var (count, more): (Int32, Int32) = (0, 0)
        guard EVP_DecryptInit_ex(context, kind, nil, key, nonce) == 1,
            EVP_DecryptUpdate(context, nil, &count, authenticated, Int32(authenticated.count)) == 1,
            EVP_DecryptUpdate(context, &opened, &count, text, Int32(text.count)) == 1,
            EVP_CIPHER_CTX_ctrl(context, EVP_CTRL_AEAD_SET_TAG, 16, &tag) == 1,
            EVP_DecryptFinal_ex(context, nil, &more) == 1
        else {
            ERR_clear_error()
            return nil
        }
        return Array(opened.prefix(Int(count)))
    }
}
