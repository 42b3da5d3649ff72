import CountersignSeal

/// The server's key and the envelope travel under a pad that only the right password gives: an account that exists and one
/// that does not answer alike. Source: RFC 9807 §6.3.2.2, §6.3.2.3.
extension CredentialResponse {
    init(
        evaluated: Ristretto255.Element, maskingNonce: Nonce, record: RegistrationRecord,
        serverPublicKey: Ristretto255.Element
    ) {
        self.init(
            evaluated: evaluated, maskingNonce: maskingNonce,
            masked: CredentialResponse.mask(
                serverPublicKey.bytes + record.envelope.bytes, with: record.maskingKey, maskingNonce))
    }

    /// What the pad of `key` uncovers. With another key than the server's it is noise, which the envelope's tag tells.
    func unmask(with key: Secret) -> (serverPublicKey: [UInt8], envelope: Envelope) {
        let plain = CredentialResponse.mask(masked.array, with: key, maskingNonce).array
        let envelope = Array(plain[32...])
        return (
            Array(plain[..<32]), Envelope(nonce: Nonce { envelope[$0] }, tag: Tag { envelope[32 + $0] })
        )
    }

    private static func mask(_ bytes: [UInt8], with key: Secret, _ nonce: Nonce) -> FixedBytes<Length128> {
        let pad = HKDFSHA512.expand(
            key, info: nonce.array + "CredentialResponsePad".utf8, count: CredentialResponse.maskedCount)
        return pad.withExposedBytes { pad in FixedBytes { pad[$0] ^ bytes[$0] } }
    }
}
