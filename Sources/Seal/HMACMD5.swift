import CountersignSodium

/// HMAC-MD5, only for the legacy logins that are built on it. Source: RFC 2104, RFC 1321.
package enum HMACMD5 {
    package static func authenticate(_ message: Span<UInt8>, key: Span<UInt8>) -> Digest16 {
        var block = Digest64()
        if key.count > 64 {
            let short = MD5.digest(key)
            for index in 0..<16 { block[index] = short[index] }
        } else {
            for index in 0..<key.count { block[index] = key[index] }
        }
        defer { block.withUnsafeMutableBytes { sodium_memzero($0.baseAddress, $0.count) } }
        let inner = hash(message, after: block, maskedWith: 0x36)
        return hash(inner.span, after: block, maskedWith: 0x5C)
    }

    private static func hash(_ message: Span<UInt8>, after block: Digest64, maskedWith mask: UInt8)
        -> Digest16
    {
        var masked = block
        for index in 0..<64 { masked[index] ^= mask }
        var context = MD5()
        context.update(masked.span)
        context.update(message)
        masked.withUnsafeMutableBytes { sodium_memzero($0.baseAddress, $0.count) }
        return context.finish()
    }
}

extension MD5 {
    package static func digest(_ bytes: Span<UInt8>) -> Digest16 {
        var hash = MD5()
        hash.update(bytes)
        return hash.finish()
    }
}

/// A keyed 128-bit hash of short input: SipHash-2-4-128. Without the key, collisions cannot be constructed,
/// so the hash can replace its input in a table. It is not a MAC for messages.
package struct KeyedHash: Sendable {
    package typealias Key = Bytes16

    private let key: Key

    package init(key: Key) { self.key = key }

    package func hash(_ input: borrowing Span<UInt8>) -> (low: UInt64, high: UInt64) {
        var output: (low: UInt64, high: UInt64) = (0, 0)
        withUnsafeMutableBytes(of: &output) { output in
            key.span.withUnsafeBytes { key in
                input.withUnsafeBytes { input in
                    // libsodium requires an address even for zero bytes; any address will do.
                    guard let target = output.baseAddress, let key = key.baseAddress else { return }
                    let source = input.baseAddress ?? key
                    _ = crypto_shorthash_siphashx24(target, source, UInt64(input.count), key)
                }
            }
        }
        return output
    }
}
