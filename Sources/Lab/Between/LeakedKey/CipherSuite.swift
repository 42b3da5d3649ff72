/// How a conversation is encrypted, as far as this reader goes. Source: RFC 5288 §3, RFC 5289 §3.2, RFC 7905 §2, RFC 8446 §B.4.
struct CipherSuite: Equatable {
    enum Exchange { case rsa, ephemeral, tls13 }
    enum Hash: String { case sha256 = "SHA256", sha384 = "SHA384" }
    enum Cipher { case aes128GCM, aes256GCM, chaCha20Poly1305 }

    let exchange: Exchange
    let hash: Hash
    let cipher: Cipher

    /// By its number on the wire; nil for others.
    init?(_ number: UInt16) {
        switch number {
        case 0x009C: self.init(.rsa, .sha256, .aes128GCM)
        case 0x009D: self.init(.rsa, .sha384, .aes256GCM)
        case 0xC02B, 0xC02F: self.init(.ephemeral, .sha256, .aes128GCM)
        case 0xC02C, 0xC030: self.init(.ephemeral, .sha384, .aes256GCM)
        case 0xCCA8, 0xCCA9: self.init(.ephemeral, .sha256, .chaCha20Poly1305)
        case 0x1301: self.init(.tls13, .sha256, .aes128GCM)
        case 0x1302: self.init(.tls13, .sha384, .aes256GCM)
        case 0x1303: self.init(.tls13, .sha256, .chaCha20Poly1305)
        default: return nil
        }
    }

    private init(_ exchange: Exchange, _ hash: Hash, _ cipher: Cipher) {
        self.exchange = exchange
        self.hash = hash
        self.cipher = cipher
    }
}

extension CipherSuite.Cipher {
    var keyLength: Int { self == .aes128GCM ? 16 : 32 }
    /// What of the nonce comes out of the key block in TLS 1.2; the rest of GCM's stands in each record. Source: RFC 5288 §3, RFC 7905 §2.
    var saltLength: Int { self == .chaCha20Poly1305 ? 12 : 4 }
}

extension CipherSuite.Hash {
    var length: Int { self == .sha256 ? 32 : 48 }
}
