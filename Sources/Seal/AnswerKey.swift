import CountersignSodium

/// An Ed25519 key of the authority's, kept as its 32-byte seed. Source: RFC 8032.
package enum AnswerKey {
    package static let seedCount = Int(crypto_sign_SEEDBYTES)

    /// The public half that belongs to a seed; nil where the seed is not 32 bytes.
    package static func publicHalf(of seed: Secret) -> [UInt8]? {
        guard seed.count == seedCount, sodium_init() >= 0 else { return nil }
        var publicHalf = [UInt8](repeating: 0, count: Int(crypto_sign_PUBLICKEYBYTES))
        var secretHalf = [UInt8](repeating: 0, count: Int(crypto_sign_SECRETKEYBYTES))
        defer { secretHalf.withUnsafeMutableBytes { sodium_memzero($0.baseAddress, $0.count) } }
        seed.withPointer { seed in
            _ = crypto_sign_seed_keypair(&publicHalf, &secretHalf, seed)
        }
        return publicHalf
    }
}
