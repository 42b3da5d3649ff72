import CCrypto

/// The cipher suites that the decryptor supports. Source: RFC 5288 §3, RFC 5289 §3.2, RFC 7905 §2, RFC 8446
/// §B.4.
struct CipherSuite: Equatable {
    enum Exchange { case rsa, ephemeral, tls13 }
    enum Hash: String { case sha256 = "SHA256", sha384 = "SHA384" }
    enum Cipher { case aes128GCM, aes256GCM, chaCha20Poly1305 }

    let exchange: Exchange
    let hash: Hash
    let cipher: Cipher

    /// By the number on the wire; nil for suites that are not supported.
    init?(_ number: UInt16) {
        switch number {
        case 0x009C: self.init(exchange: .rsa, hash: .sha256, cipher: .aes128GCM)
        case 0x009D: self.init(exchange: .rsa, hash: .sha384, cipher: .aes256GCM)
        case 0xC02B, 0xC02F: self.init(exchange: .ephemeral, hash: .sha256, cipher: .aes128GCM)
        case 0xC02C, 0xC030: self.init(exchange: .ephemeral, hash: .sha384, cipher: .aes256GCM)
        case 0xCCA8, 0xCCA9: self.init(exchange: .ephemeral, hash: .sha256, cipher: .chaCha20Poly1305)
        case 0x1301: self.init(exchange: .tls13, hash: .sha256, cipher: .aes128GCM)
        case 0x1302: self.init(exchange: .tls13, hash: .sha384, cipher: .aes256GCM)
        case 0x1303: self.init(exchange: .tls13, hash: .sha256, cipher: .chaCha20Poly1305)
        default: return nil
        }
    }

    private init(exchange: Exchange, hash: Hash, cipher: Cipher) {
        self.exchange = exchange
        self.hash = hash
        self.cipher = cipher
    }
}

extension CipherSuite.Cipher {
    var keyLength: Int { self == .aes128GCM ? 16 : 32 }
    /// The bytes of the nonce that TLS 1.2 takes from the key block; the rest of GCM's nonce is in each
    /// record. Source: RFC 5288 §3, RFC 7905 §2.
    var saltLength: Int { self == .chaCha20Poly1305 ? 12 : 4 }
}

extension CipherSuite.Hash {
    var length: Int { self == .sha256 ? 32 : 48 }
}

/// TLS's key derivation with one hash. Source: RFC 5246 §5, RFC 8446 §7.1.
struct TLSKeyDerivation {
    let hash: CipherSuite.Hash

    func digest(_ bytes: [UInt8]) -> [UInt8] {
        var out = [UInt8](repeating: 0, count: hash.length)
        var count = 0
        EVP_Q_digest(nil, hash.rawValue, nil, bytes, bytes.count, &out, &count)
        return out
    }

    func mac(key: [UInt8], message bytes: [UInt8]) -> [UInt8] {
        var out = [UInt8](repeating: 0, count: hash.length)
        var count = 0
        EVP_Q_mac(
            nil, "HMAC", nil, hash.rawValue, nil, key, key.count, bytes, bytes.count, &out, out.count, &count)
        return out
    }

    /// TLS 1.2's pseudorandom function.
    func prf(secret: [UInt8], label: String, seed: [UInt8], count: Int) -> [UInt8] {
        let seed = Array(label.utf8) + seed
        var (chain, out) = (mac(key: secret, message: seed), [UInt8]())
        while out.count < count {
            out += mac(key: secret, message: chain + seed)
            chain = mac(key: secret, message: chain)
        }
        return Array(out.prefix(count))
    }

    /// TLS 1.3's `HKDF-Expand-Label`.
    func expand(_ secret: [UInt8], label: String, context: [UInt8] = [], count: Int) -> [UInt8] {
        let label = Array("tls13 \(label)".utf8)
        let info =
            [UInt8(count >> 8), UInt8(count & 255), UInt8(label.count)] + label + [UInt8(context.count)]
            + context
        var (block, out, round) = ([UInt8](), [UInt8](), UInt8(1))
        while out.count < count {
            block = mac(key: secret, message: block + info + [round])
            out += block
            round += 1
        }
        return Array(out.prefix(count))
    }

    /// TLS 1.3's `Derive-Secret`.
    func derive(_ secret: [UInt8], label: String, transcript: [UInt8]) -> [UInt8] {
        expand(secret, label: label, context: digest(transcript), count: hash.length)
    }
}

/// Decrypts one side's records in order.
struct TLSRecordCipher {
    enum Version {
        case tls12
        case tls13
    }

    let cipher: CipherSuite.Cipher
    let version: Version
    let key: [UInt8]
    /// The fixed part of the nonce.
    let salt: [UInt8]
    private var sequence: UInt64 = 0

    init(_ cipher: CipherSuite.Cipher, version: Version, key: [UInt8], salt: [UInt8]) {
        (self.cipher, self.version, self.key, self.salt) = (cipher, version, key, salt)
    }

    /// The plaintext and type of the next record; nil where the tag is not valid, for another key or a
    /// changed record.
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
        guard
            let opened = decrypt(
                sealed, nonce: nonce, authenticated: version == .tls12 ? number + counted : counted)
        else {
            return nil
        }
        sequence += 1
        guard version == .tls13 else { return (record.kind, opened) }
        // The content type is at the end, before the padding. Source: RFC 8446 §5.4.
        guard let last = opened.lastIndex(where: { $0 != 0 }),
            let kind = TLSRecord.Kind(rawValue: opened[last])
        else {
            return nil
        }
        return (kind, Array(opened[..<last]))
    }

    private func decrypt(_ sealed: [UInt8], nonce: [UInt8], authenticated: [UInt8]) -> [UInt8]? {
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
