import CountersignSeal

/// The part of ``KE2`` by which the client gets at its envelope. Source: RFC 9807 §6.3.1.
struct CredentialResponse: Sendable {
    /// The server's public key and the envelope.
    static let maskedCount = Ristretto255.Element.count + Envelope.count

    let evaluated: Ristretto255.Element
    let maskingNonce: Nonce
    let masked: FixedBytes<Length128>

    /// Nil for another length, or where there is no element.
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
