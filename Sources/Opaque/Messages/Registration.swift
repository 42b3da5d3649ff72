import CountersignSeal

/// The blinded password: what registration begins with. Source: RFC 9807 §5.1.
package struct RegistrationRequest: Sendable {
    let blinded: Ristretto255.Element

    /// `malformed` where `bytes` are not 32 that spell an element.
    package init(_ bytes: [UInt8]) throws(OpaqueRefusal) {
        guard let blinded = Ristretto255.Element(bytes) else { throw .malformed(.registrationRequest) }
        self.blinded = blinded
    }

    init(blinded: Ristretto255.Element) { self.blinded = blinded }

    /// 32 bytes.
    package var bytes: [UInt8] { blinded.bytes }
}

/// The evaluation, and the key that the server will be known by. Source: §5.1.
package struct RegistrationResponse: Sendable {
    let evaluated: Ristretto255.Element
    /// Long-lived: to compare with what the client knows of the server.
    package let serverPublicKey: Ristretto255.Element

    /// `malformed` where `bytes` are not 64 that spell two elements.
    package init(_ bytes: [UInt8]) throws(OpaqueRefusal) {
        guard bytes.count == MessageKind.registrationResponse.count,
            let evaluated = Ristretto255.Element(Array(bytes[0..<32])),
            let serverPublicKey = Ristretto255.Element(Array(bytes[32..<64]))
        else { throw .malformed(.registrationResponse) }
        self.init(evaluated: evaluated, serverPublicKey: serverPublicKey)
    }

    init(evaluated: Ristretto255.Element, serverPublicKey: Ristretto255.Element) {
        self.evaluated = evaluated
        self.serverPublicKey = serverPublicKey
    }

    /// 64 bytes.
    package var bytes: [UInt8] { evaluated.bytes + serverPublicKey.bytes }
}

/// What the server keeps of an account. Who has it and the server's seed can guess passwords, so both of its ways are
/// sealed. Source: §5.1.
package struct RegistrationRecord: Sendable {
    let clientPublicKey: Ristretto255.Element
    /// 64 bytes. Hides the envelope of this account as well as an account that does not exist.
    let maskingKey: Secret
    let envelope: Envelope

    /// `malformed` where `bytes` are not 192 that begin with an element.
    package init(_ bytes: Secret) throws(OpaqueRefusal) {
        guard bytes.count == MessageKind.registrationRecord.count,
            let clientPublicKey = Ristretto255.Element(FixedBytes<Length32>(publishing: bytes.part(0..<32)).array),
            let envelope = Envelope(FixedBytes<Length96>(publishing: bytes.part(96..<192)).array)
        else { throw .malformed(.registrationRecord) }
        self.init(clientPublicKey: clientPublicKey, maskingKey: bytes.part(32..<96), envelope: envelope)
    }

    init(clientPublicKey: Ristretto255.Element, maskingKey: Secret, envelope: Envelope) {
        self.clientPublicKey = clientPublicKey
        self.maskingKey = maskingKey
        self.envelope = envelope
    }

    /// 192 bytes: public key, masking key, envelope.
    package var bytes: Secret {
        Secret(joining: [
            Secret(copying: clientPublicKey.bytes.span), maskingKey, Secret(copying: envelope.bytes.span),
        ])
    }
}
