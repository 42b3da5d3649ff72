import CountersignSeal

/// The first message of a registration: the blinded password. Source: RFC 9807 §5.1.
package struct RegistrationRequest: Sendable {
    let blinded: Ristretto255.Element

    /// Throws `malformed` unless `bytes` are the 32 bytes of an element.
    package init(_ bytes: [UInt8]) throws(OpaqueError) {
        guard let blinded = Ristretto255.Element(bytes) else { throw .malformed(.registrationRequest) }
        self.blinded = blinded
    }

    init(blinded: Ristretto255.Element) { self.blinded = blinded }

    /// 32 bytes.
    package var bytes: [UInt8] { blinded.bytes }
}

/// The evaluation, and the server's public key. Source: §5.1.
package struct RegistrationResponse: Sendable {
    let evaluated: Ristretto255.Element
    /// The server's long-term key, to compare with the one that the client expects.
    package let serverPublicKey: Ristretto255.Element

    /// Throws `malformed` unless `bytes` are the 64 bytes of two elements.
    package init(_ bytes: [UInt8]) throws(OpaqueError) {
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

/// The record that the server keeps of an account. A thief of the record and the server's seed can guess
/// passwords, so it is sealed in transit and in the store. Source: §5.1.
package struct RegistrationRecord: Sendable {
    let clientPublicKey: Ristretto255.Element
    /// 64 bytes. Masks the envelope in ``KE2``, so that responses for existing and unknown accounts look
    /// alike.
    let maskingKey: Secret
    let envelope: Envelope

    /// Throws `malformed` unless `bytes` are 192 and begin with an element.
    package init(_ bytes: Secret) throws(OpaqueError) {
        guard bytes.count == MessageKind.registrationRecord.count,
            let clientPublicKey = Ristretto255.Element(
                FixedBytes<Length32>(publishing: bytes.part(0..<32)).array),
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

/// The first message of a login: the blinded password, a nonce and a key share. Source: RFC 9807 §6.1.
package struct KE1: Sendable {
    let blinded: Ristretto255.Element
    let nonce: Nonce
    let keyShare: Ristretto255.Element

    /// Throws `malformed` unless `bytes` are 96 and begin and end with an element.
    package init(_ bytes: [UInt8]) throws(OpaqueError) {
        guard bytes.count == MessageKind.ke1.count,
            let blinded = Ristretto255.Element(Array(bytes[0..<32])),
            let nonce = Nonce(Array(bytes[32..<64])),
            let keyShare = Ristretto255.Element(Array(bytes[64..<96]))
        else { throw .malformed(.ke1) }
        self.init(blinded: blinded, nonce: nonce, keyShare: keyShare)
    }

    init(blinded: Ristretto255.Element, nonce: Nonce, keyShare: Ristretto255.Element) {
        self.blinded = blinded
        self.nonce = nonce
        self.keyShare = keyShare
    }

    /// 96 bytes.
    package var bytes: [UInt8] { blinded.bytes + nonce.array + keyShare.bytes }
}

/// The evaluation with the masked envelope, and the server's side of the key exchange. Source: §6.1, §6.3.1.
package struct KE2: Sendable {
    let credentials: CredentialResponse
    let nonce: Nonce
    let keyShare: Ristretto255.Element
    let serverMAC: Tag

    /// Throws `malformed` unless `bytes` are 320 and have valid elements at their places.
    package init(_ bytes: [UInt8]) throws(OpaqueError) {
        guard bytes.count == MessageKind.ke2.count,
            let credentials = CredentialResponse(Array(bytes[0..<192])),
            let nonce = Nonce(Array(bytes[192..<224])),
            let keyShare = Ristretto255.Element(Array(bytes[224..<256])),
            let serverMAC = Tag(Array(bytes[256..<320]))
        else { throw .malformed(.ke2) }
        self.init(credentials: credentials, nonce: nonce, keyShare: keyShare, serverMAC: serverMAC)
    }

    init(credentials: CredentialResponse, nonce: Nonce, keyShare: Ristretto255.Element, serverMAC: Tag) {
        self.credentials = credentials
        self.nonce = nonce
        self.keyShare = keyShare
        self.serverMAC = serverMAC
    }

    /// 320 bytes.
    package var bytes: [UInt8] { credentials.bytes + nonce.array + keyShare.bytes + serverMAC.array }
}

/// The client's MAC, which proves that it opened the envelope. Source: §6.1.
package struct KE3: Sendable {
    let clientMAC: Tag

    /// Throws `malformed` unless `bytes` are 64.
    package init(_ bytes: [UInt8]) throws(OpaqueError) {
        guard let clientMAC = Tag(bytes) else { throw .malformed(.ke3) }
        self.clientMAC = clientMAC
    }

    init(clientMAC: Tag) { self.clientMAC = clientMAC }

    /// 64 bytes.
    package var bytes: [UInt8] { clientMAC.array }
}
