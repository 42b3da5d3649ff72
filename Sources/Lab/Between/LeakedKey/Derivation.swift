import CCrypto

/// What TLS makes keys of. Source: RFC 5246 §5, RFC 8446 §7.1.
struct Derivation {
    let hash: CipherSuite.Hash

    func digest(_ bytes: [UInt8]) -> [UInt8] {
        var out = [UInt8](repeating: 0, count: hash.length)
        var count = 0
        EVP_Q_digest(nil, hash.rawValue, nil, bytes, bytes.count, &out, &count)
        return out
    }

    func mac(_ key: [UInt8], _ bytes: [UInt8]) -> [UInt8] {
        var out = [UInt8](repeating: 0, count: hash.length)
        var count = 0
        EVP_Q_mac(nil, "HMAC", nil, hash.rawValue, nil, key, key.count, bytes, bytes.count, &out, out.count, &count)
        return out
    }

    /// TLS 1.2's pseudorandom function.
    func prf(_ secret: [UInt8], _ label: String, _ seed: [UInt8], count: Int) -> [UInt8] {
        let seed = Array(label.utf8) + seed
        var (chain, out) = (mac(secret, seed), [UInt8]())
        while out.count < count {
            out += mac(secret, chain + seed)
            chain = mac(secret, chain)
        }
        return Array(out.prefix(count))
    }

    /// TLS 1.3's `HKDF-Expand-Label`.
    func expand(_ secret: [UInt8], _ label: String, _ context: [UInt8] = [], count: Int) -> [UInt8] {
        let label = Array("tls13 \(label)".utf8)
        let info =
            [UInt8(count >> 8), UInt8(count & 255), UInt8(label.count)] + label + [UInt8(context.count)] + context
        var (block, out, round) = ([UInt8](), [UInt8](), UInt8(1))
        while out.count < count {
            block = mac(secret, block + info + [round])
            out += block
            round += 1
        }
        return Array(out.prefix(count))
    }

    /// TLS 1.3's `Derive-Secret`.
    func derive(_ secret: [UInt8], _ label: String, of transcript: [UInt8]) -> [UInt8] {
        expand(secret, label, digest(transcript), count: hash.length)
    }
}
