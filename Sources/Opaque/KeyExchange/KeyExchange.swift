import CountersignSeal

/// A party's key pair for the exchange. Source: RFC 9807 §6.4.1.1.
struct KeyPair: Sendable {
    /// Bytes of the seed that a key pair is derived from. Source: §2: Nseed.
    static let seedCount = 32

    let privateKey: Ristretto255.Scalar
    let publicKey: Ristretto255.Element

    init(privateKey: Ristretto255.Scalar) throws(SealError) {
        self.privateKey = privateKey
        publicKey = try Ristretto255.Element(generatorTimes: privateKey)
    }

    init(seed: Secret) throws(SealError) {
        try self.init(privateKey: try OPRF.deriveKey(seed: seed, info: "OPAQUE-DeriveDiffieHellmanKeyPair"))
    }
}

/// The client's side of the key exchange, after its envelope is open. Source: RFC 9807 §6.4.3.
struct ClientExchange: Sendable {
    let schedule: KeySchedule

    /// `share` is the key pair of this login; `keys.client` is that of the account.
    init(
        _ ke2: KE2, after ke1: KE1, share: KeyPair, keys: EnvelopeKeys, serverPublicKey: Ristretto255.Element,
        as parties: Parties, context: LoginContext
    ) throws(SealError) {
        let secrets = [
            try ke2.keyShare.secretProduct(share.privateKey),
            try serverPublicKey.secretProduct(share.privateKey),
            try ke2.keyShare.secretProduct(keys.client.privateKey),
        ]
        let transcript = Preamble(
            context: context, clientIdentity: parties.client.bytes(orKey: keys.client.publicKey.bytes),
            ke1: ke1,
            serverIdentity: parties.server.bytes(orKey: serverPublicKey.bytes), credentials: ke2.credentials,
            serverNonce: ke2.nonce, serverKeyShare: ke2.keyShare)
        schedule = KeySchedule(sharedSecrets: secrets, transcript: transcript)
    }
}

/// The server's side of the key exchange and all derived keys. Source: RFC 9807 §6.2.2, §6.4.4.
struct ServerExchange: Sendable {
    let ke2: KE2
    let schedule: KeySchedule

    init(
        _ ke1: KE1, record: RegistrationRecord, credential: [UInt8], as parties: Parties,
        context: LoginContext,
        keys: ServerKeys, random: some RandomSource
    ) throws(SealError) {
        let credentials = CredentialResponse(
            evaluated: try keys.evaluate(ke1.blinded, credential: credential),
            maskingNonce: Nonce(random: random),
            record: record, serverPublicKey: keys.publicKey)
        let nonce = Nonce(random: random)
        let share = try KeyPair(seed: random.secret(KeyPair.seedCount))
        let secrets = [
            try ke1.keyShare.secretProduct(share.privateKey),
            try ke1.keyShare.secretProduct(keys.keyPair.privateKey),
            try record.clientPublicKey.secretProduct(share.privateKey),
        ]
        let transcript = Preamble(
            context: context, clientIdentity: parties.client.bytes(orKey: record.clientPublicKey.bytes),
            ke1: ke1,
            serverIdentity: parties.server.bytes(orKey: keys.publicKey.bytes), credentials: credentials,
            serverNonce: nonce, serverKeyShare: share.publicKey)
        schedule = KeySchedule(sharedSecrets: secrets, transcript: transcript)
        ke2 = KE2(
            credentials: credentials, nonce: nonce, keyShare: share.publicKey,
            serverMAC: Tag(publishing: schedule.serverMAC()))
    }
}
