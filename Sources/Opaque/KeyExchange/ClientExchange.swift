import CountersignSeal

/// The client's half of the key exchange, once its envelope is open. Source: RFC 9807 §6.4.3.
struct ClientExchange: Sendable {
    let schedule: KeySchedule

    /// `share` is the login's own key pair; `keys.client` is the account's.
    init(
        _ ke2: KE2, after ke1: KE1, share: KeyPair, keys: EnvelopeKeys, serverPublicKey: Ristretto255.Element,
        as parties: Parties, context: LoginContext
    ) throws(CryptographyFault) {
        let secrets = [
            try ke2.keyShare.secretProduct(share.privateKey),
            try serverPublicKey.secretProduct(share.privateKey),
            try ke2.keyShare.secretProduct(keys.client.privateKey),
        ]
        let transcript = Transcript(
            context: context, clientIdentity: parties.client.bytes(orKey: keys.client.publicKey.bytes), ke1: ke1,
            serverIdentity: parties.server.bytes(orKey: serverPublicKey.bytes), credentials: ke2.credentials,
            serverNonce: ke2.nonce, serverKeyShare: ke2.keyShare)
        schedule = KeySchedule(sharedSecrets: secrets, transcript: transcript)
    }
}
