import CountersignSeal

/// The blinded password, a nonce and a key share: what a login begins with. Source: RFC 9807 §6.1.
package struct KE1: Sendable {
    let blinded: Ristretto255.Element
    let nonce: Nonce
    let keyShare: Ristretto255.Element

    /// `malformed` where `bytes` are not 96 with an element at either end.
    package init(_ bytes: [UInt8]) throws(OpaqueRefusal) {
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

/// The evaluation with the masked envelope, and the server's half of the key exchange. Source: §6.1, §6.3.1.
package struct KE2: Sendable {
    let credentials: CredentialResponse
    let nonce: Nonce
    let keyShare: Ristretto255.Element
    let serverMAC: Tag

    /// `malformed` where `bytes` are not 320 with elements where they belong.
    package init(_ bytes: [UInt8]) throws(OpaqueRefusal) {
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

/// The client's MAC: the proof that it opened the envelope. Source: §6.1.
package struct KE3: Sendable {
    let clientMAC: Tag

    /// `malformed` where `bytes` are not 64.
    package init(_ bytes: [UInt8]) throws(OpaqueRefusal) {
        guard let clientMAC = Tag(bytes) else { throw .malformed(.ke3) }
        self.clientMAC = clientMAC
    }

    init(clientMAC: Tag) { self.clientMAC = clientMAC }

    /// 64 bytes.
    package var bytes: [UInt8] { clientMAC.array }
}
