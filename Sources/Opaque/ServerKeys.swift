import CountersignSeal

/// The server's secrets for all of its accounts: the seed of their OPRF keys, and its own key pair. A thief
/// of these keys and the records can guess passwords. If the keys are lost, the records are useless, and
/// every account must register again.
package struct ServerKeys: Sendable {
    /// The length of ``bytes``.
    package static let count = 96
    private static let seedCount = 64

    private let seed: Secret
    let keyPair: KeyPair
    /// The record from which a login of an unknown account is answered, so that a client cannot tell. One
    /// record serves all names: the responses differ by the OPRF key, which is derived from the name, and by
    /// the masking nonce. The record's own keys are derived from the seed, so that it stays the same without
    /// being stored. Source: RFC 9807 §6.3.2.2, §10.9.
    package let fakeRecord: RegistrationRecord

    /// The key by which clients recognize the server.
    package var publicKey: Ristretto255.Element { keyPair.publicKey }

    /// Generates new keys: 64 bytes of `random` for the seed, then a private key.
    package static func random(_ random: some RandomSource = SystemRandom()) throws(SealError)
        -> ServerKeys
    {
        let seed = random.secret(seedCount)
        return try ServerKeys(seed: seed, privateKey: try .random(random))
    }

    /// Parses ``bytes``: the seed, 64 bytes, and the private key, 32. Nil if they are invalid.
    package init?(_ bytes: Secret) throws(SealError) {
        let (seedCount, count) = (ServerKeys.seedCount, ServerKeys.count)
        guard bytes.count == count, let privateKey = Ristretto255.Scalar(bytes.part(seedCount..<count)) else {
            return nil
        }
        try self.init(seed: bytes.part(0..<seedCount), privateKey: privateKey)
    }

    private init(seed: Secret, privateKey: Ristretto255.Scalar) throws(SealError) {
        self.seed = seed
        keyPair = try KeyPair(privateKey: privateKey)
        // The info of an account's key ends in "OprfKey", so that these two labels are never an account's.
        func derive(_ label: String, count: Int) -> Secret {
            HKDFSHA512.expand(seed, info: Array("countersign/1 fake record \(label)".utf8), count: count)
        }
        fakeRecord = try .fake(
            clientPublicKey: KeyPair(seed: derive("private key", count: KeyPair.seedCount)).publicKey,
            maskingKey: derive("masking key", count: HKDFSHA512.keyCount))
    }

    /// The bytes to seal and to keep for as long as the records.
    package var bytes: Secret { Secret(joining: [seed, keyPair.privateKey.bytes]) }

    /// The key of one credential. Source: §5.2.2.
    func oprfKey(credential: [UInt8]) throws(SealError) -> Ristretto255.Scalar {
        let seed = HKDFSHA512.expand(seed, info: credential + "OprfKey".utf8, count: KeyPair.seedCount)
        return try OPRF.deriveKey(seed: seed, info: "OPAQUE-DeriveKeyPair")
    }

    func evaluate(
        _ blinded: Ristretto255.Element, credential: [UInt8]
    ) throws(SealError) -> Ristretto255.Element {
        try OPRF.evaluate(blinded, with: oprfKey(credential: credential))
    }
}

extension RegistrationRecord {
    /// A record with an envelope of zeros, which opens for no password, because no HMAC output is known to be
    /// zero. Source: §6.3.2.2.
    static func fake(clientPublicKey: Ristretto255.Element, maskingKey: Secret) -> RegistrationRecord {
        RegistrationRecord(
            clientPublicKey: clientPublicKey, maskingKey: maskingKey,
            envelope: Envelope(nonce: Nonce { _ in 0 }, tag: Tag { _ in 0 }))
    }
}
