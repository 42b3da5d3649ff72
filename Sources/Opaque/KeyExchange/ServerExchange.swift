import CountersignSeal

/// The server's half of the key exchange, with every key it gives. Source: RFC 9807 §6.2.2, §6.4.4.
struct ServerExchange: Sendable {
    let ke2: KE2
    let schedule: KeySchedule

    init(
        _ ke1: KE1, record: RegistrationRecord, credential: [UInt8], as parties: Parties, context: LoginContext,
        keys: ServerKeys, random: some RandomSource
    ) throws(CryptographyFault) {
        let credentials = CredentialResponse(
            evaluated: try keys.evaluate(ke1.blinded, credential: credential), maskingNonce: Nonce(random: random),
            record: record, serverPublicKey: keys.publicKey)
        let nonce = Nonce(random: random)
        let share = try KeyPair(seed: random.secret(KeyPair.seedCount))
        let secrets = [
            try ke1.keyShare.secretProduct(share.privateKey),
            try ke1.keyShare.secretProduct(keys.keyPair.privateKey),
            try record.clientPublicKey.secretProduct(share.privateKey),
        ]
        let transcript = Transcript(
            context: context, clientIdentity: parties.client.bytes(orKey: record.clientPublicKey.bytes), ke1: ke1,
            serverIdentity: parties.server.bytes(orKey: keys.publicKey.bytes), credentials: credentials,
            serverNonce: nonce, serverKeyShare: share.publicKey)
        schedule = KeySchedule(sharedSecrets: secrets, transcript: transcript)
        ke2 = KE2(
            credentials: credentials, nonce: nonce, keyShare: share.publicKey,
            serverMAC: Tag(publishing: schedule.serverMAC()))
    }
}
