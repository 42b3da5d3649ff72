import CountersignSeal

/// What a server has for all of its accounts: the seed of their OPRF keys, and its own key pair. Who has it and the records
/// can guess passwords; without it the records are useless, and every account would have to register anew.
package struct ServerKeys: Sendable {
    /// Bytes of ``bytes``.
    package static let count = 96
    private static let seedCount = 64

    private let seed: Secret
    let keyPair: KeyPair
    /// The record to answer with where there is no account, so that no one can tell. It stands for every name: what
    /// makes the answers differ is the OPRF key, which comes from the name, and the masking nonce. Its own keys come from
    /// the seed, so it stays the same without being stored. Source: RFC 9807 §6.3.2.2, §10.9.
    package let fakeRecord: RegistrationRecord

    /// By which clients know the server.
    package var publicKey: Ristretto255.Element { keyPair.publicKey }

    /// New ones: 64 bytes of `random` for the seed, then a private key.
    package static func random(_ random: some RandomSource = SystemRandom()) throws(CryptographyFault) -> ServerKeys {
        let seed = random.secret(seedCount)
        return try ServerKeys(seed: seed, privateKey: try .random(random))
    }

    /// From what ``bytes`` gave: the seed, 64 bytes, and the private key, 32. Nil where they are none.
    package init?(_ bytes: Secret) throws(CryptographyFault) {
        let (seedCount, count) = (ServerKeys.seedCount, ServerKeys.count)
        guard bytes.count == count, let privateKey = Ristretto255.Scalar(bytes.part(seedCount..<count)) else {
            return nil
        }
        try self.init(seed: bytes.part(0..<seedCount), privateKey: privateKey)
    }

    private init(seed: Secret, privateKey: Ristretto255.Scalar) throws(CryptographyFault) {
        self.seed = seed
        keyPair = try KeyPair(privateKey: privateKey)
        // An account's own info ends in "OprfKey", so that these two are no account's.
        func derive(_ label: String, _ count: Int) -> Secret {
            HKDFSHA512.expand(seed, info: Array("countersign/1 fake record \(label)".utf8), count: count)
        }
        fakeRecord = try .fake(
            clientPublicKey: KeyPair(seed: derive("private key", KeyPair.seedCount)).publicKey,
            maskingKey: derive("masking key", HKDFSHA512.keyCount))
    }

    /// To be sealed, and kept for as long as the records.
    package var bytes: Secret { Secret(joining: [seed, keyPair.privateKey.bytes]) }

    /// The key of one credential. Source: §5.2.2.
    func oprfKey(credential: [UInt8]) throws(CryptographyFault) -> Ristretto255.Scalar {
        let seed = HKDFSHA512.expand(seed, info: credential + "OprfKey".utf8, count: KeyPair.seedCount)
        return try OPRF.deriveKey(seed: seed, info: "OPAQUE-DeriveKeyPair")
    }

    func evaluate(
        _ blinded: Ristretto255.Element, credential: [UInt8]
    ) throws(CryptographyFault) -> Ristretto255.Element {
        try OPRF.evaluate(blinded, with: oprfKey(credential: credential))
    }
}

extension RegistrationRecord {
    /// An envelope of zeros, which opens for no password: no HMAC's output is known to be zero. Source: §6.3.2.2.
    static func fake(clientPublicKey: Ristretto255.Element, maskingKey: Secret) -> RegistrationRecord {
        RegistrationRecord(
            clientPublicKey: clientPublicKey, maskingKey: maskingKey,
            envelope: Envelope(nonce: Nonce { _ in 0 }, tag: Tag { _ in 0 }))
    }
}
