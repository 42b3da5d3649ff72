import CountersignSeal

/// A client's side of one registration: `request` goes to the server, and its response to ``finish(_:as:stretching:random:)``.
/// Source: RFC 9807 §5.
package struct ClientRegistration: ~Copyable {
    /// The blinded password.
    package let request: RegistrationRequest
    private let password: Password
    private let blind: Ristretto255.Scalar

    /// Blinds the password; `random` is drawn from once, for the blind.
    package init(_ password: Password, random: some RandomSource = SystemRandom()) throws(CryptographyFault) {
        let (blind, blinded) = try OPRF.blind(password, random: random)
        self.password = password
        self.blind = blind
        request = RegistrationRequest(blinded: blinded)
    }

    /// The record for the server to keep. It must travel where only the server can read it, and where no one can put
    /// another in its place.
    package consuming func finish(
        _ response: RegistrationResponse, as parties: Parties, stretching: KeyStretching,
        random: some RandomSource = SystemRandom()
    ) throws(CryptographyFault) -> Registered {
        let randomized = try RandomizedPassword(
            password, blind: blind, evaluated: response.evaluated, stretching)
        let nonce = Nonce(random: random)
        let keys = try EnvelopeKeys(randomized, nonce: nonce)
        let tag = keys.tag(serverPublicKey: response.serverPublicKey.bytes, parties)
        let record = RegistrationRecord(
            clientPublicKey: keys.client.publicKey, maskingKey: randomized.maskingKey,
            envelope: Envelope(nonce: nonce, tag: Tag(publishing: tag)))
        return Registered(
            record: record, exportKey: keys.exportKey, serverPublicKey: response.serverPublicKey)
    }

    /// What a registration gives the client.
    package struct Registered: Sendable {
        /// Goes to the server, sealed.
        package let record: RegistrationRecord
        /// 64 bytes for the application, which the server never learns, and each login gives again. Source: §10.4.
        package let exportKey: Secret
        /// To compare with the key that the client knows the server by.
        package let serverPublicKey: Ristretto255.Element
    }
}
