import CountersignSeal

/// What lets a client that knows the password have its key pair again, and see that the server's key and both names are
/// those it registered with. Source: RFC 9807 §4.1.
struct Envelope: Sendable {
    static let count = 96

    let nonce: Nonce
    let tag: Tag

    init(nonce: Nonce, tag: Tag) {
        self.nonce = nonce
        self.tag = tag
    }

    /// Nil for another length.
    init?(_ bytes: [UInt8]) {
        guard bytes.count == Envelope.count, let nonce = Nonce(Array(bytes[0..<32])),
            let tag = Tag(Array(bytes[32..<96]))
        else { return nil }
        self.init(nonce: nonce, tag: tag)
    }

    var bytes: [UInt8] { nonce.array + tag.array }
}

/// What a randomized password and an envelope's nonce give. Source: §4.1.2.
struct EnvelopeKeys: Sendable {
    let authKey: Secret
    let exportKey: Secret
    let client: KeyPair
    private let nonce: Nonce

    init(_ password: RandomizedPassword, nonce: Nonce) throws(CryptographyFault) {
        self.nonce = nonce
        authKey = password.expand(nonce.array, "AuthKey", count: HKDFSHA512.keyCount)
        exportKey = password.expand(nonce.array, "ExportKey", count: HKDFSHA512.keyCount)
        client = try KeyPair(seed: password.expand(nonce.array, "PrivateKey", count: KeyPair.seedCount))
    }

    /// The tag for this server's key and these names. `serverPublicKey` is taken as bytes: before the tag is checked
    /// nothing says that it is a key.
    func tag(serverPublicKey: [UInt8], _ parties: Parties) -> Secret {
        let server = parties.server.bytes(orKey: serverPublicKey)
        let client = parties.client.bytes(orKey: client.publicKey.bytes)
        var mac = HMACSHA512(key: authKey)
        mac.update(nonce.array.span)
        mac.update(serverPublicKey.span)
        mac.update(lengthPrefix(server.count).span)
        mac.update(server.span)
        mac.update(lengthPrefix(client.count).span)
        mac.update(client.span)
        return mac.finish()
    }
}
