import CountersignSeal

/// The part of ``KE2`` from which the client recovers its envelope. Source: RFC 9807 §6.3.1.
struct CredentialResponse: Sendable {
    /// The length of the server's public key and the envelope.
    static let maskedCount = Ristretto255.Element.count + Envelope.count

    let evaluated: Ristretto255.Element
    let maskingNonce: Nonce
    let masked: FixedBytes<Length128>

    /// Nil if the length differs or the element is invalid.
    init?(_ bytes: [UInt8]) {
        guard bytes.count == 192,
            let evaluated = Ristretto255.Element(Array(bytes[0..<32])),
            let maskingNonce = Nonce(Array(bytes[32..<64])),
            let masked = FixedBytes<Length128>(Array(bytes[64..<192]))
        else { return nil }
        self.init(evaluated: evaluated, maskingNonce: maskingNonce, masked: masked)
    }

    init(evaluated: Ristretto255.Element, maskingNonce: Nonce, masked: FixedBytes<Length128>) {
        self.evaluated = evaluated
        self.maskingNonce = maskingNonce
        self.masked = masked
    }

    var bytes: [UInt8] { evaluated.bytes + maskingNonce.array + masked.array }
}

/// The server's key and the envelope are sent under a pad that only the right password gives, so that
/// responses for existing and unknown accounts look alike. Source: RFC 9807 §6.3.2.2, §6.3.2.3.
extension CredentialResponse {
    init(
        evaluated: Ristretto255.Element, maskingNonce: Nonce, record: RegistrationRecord,
        serverPublicKey: Ristretto255.Element
    ) {
        self.init(
            evaluated: evaluated, maskingNonce: maskingNonce,
            masked: CredentialResponse.mask(
                serverPublicKey.bytes + record.envelope.bytes, with: record.maskingKey, nonce: maskingNonce))
    }

    /// Removes the pad of `key`. If the server used another key, the result is random, and the envelope's tag
    /// does not verify.
    func unmask(with key: Secret) -> (serverPublicKey: [UInt8], envelope: Envelope) {
        let plain = CredentialResponse.mask(masked.array, with: key, nonce: maskingNonce).array
        let envelope = Array(plain[32...])
        return (
            Array(plain[..<32]), Envelope(nonce: Nonce { envelope[$0] }, tag: Tag { envelope[32 + $0] })
        )
    }

    private static func mask(_ bytes: [UInt8], with key: Secret, nonce: Nonce) -> FixedBytes<Length128> {
        let pad = HKDFSHA512.expand(
            key, info: nonce.array + "CredentialResponsePad".utf8, count: CredentialResponse.maskedCount)
        return pad.withExposedBytes { pad in FixedBytes { pad[$0] ^ bytes[$0] } }
    }
}
