import CountersignSeal

/// A party's key pair for the exchange. Source: RFC 9807 §6.4.1.1.
struct KeyPair: Sendable {
    /// Bytes of the seed it is derived from. Source: §2: Nseed.
    static let seedCount = 32

    let privateKey: Ristretto255.Scalar
    let publicKey: Ristretto255.Element

    init(privateKey: Ristretto255.Scalar) throws(CryptographyFault) {
        self.privateKey = privateKey
        publicKey = try Ristretto255.Element(generatorTimes: privateKey)
    }

    init(seed: Secret) throws(CryptographyFault) {
        try self.init(privateKey: try OPRF.deriveKey(seed: seed, info: "OPAQUE-DeriveDiffieHellmanKeyPair"))
    }
}
