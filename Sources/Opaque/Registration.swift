import CountersignSeal

/// A client's side of one registration: `request` goes to the server, and its response to
/// ``finish(_:as:stretching:random:)``. Source: RFC 9807 §5.
package struct ClientRegistration: ~Copyable {
    /// The blinded password.
    package let request: RegistrationRequest
    private let password: Password
    private let blind: Ristretto255.Scalar

    /// Blinds the password; `random` gives the blind.
    package init(_ password: Password, random: some RandomSource = SystemRandom()) throws(SealError) {
        let (blind, blinded) = try OPRF.blind(password, random: random)
        self.password = password
        self.blind = blind
        request = RegistrationRequest(blinded: blinded)
    }

    /// Makes the record that the server keeps. The channel that carries it must be confidential to the server
    /// and protect it from replacement.
    package consuming func finish(
        _ response: RegistrationResponse, as parties: Parties, stretching: KeyStretchingFunction,
        random: some RandomSource = SystemRandom()
    ) throws(SealError) -> RegistrationOutput {
        let randomized = try RandomizedPassword(
            password, blind: blind, evaluated: response.evaluated, stretching: stretching)
        let nonce = Nonce(random: random)
        let keys = try EnvelopeKeys(randomized, nonce: nonce)
        let tag = keys.tag(serverPublicKey: response.serverPublicKey.bytes, parties: parties)
        let record = RegistrationRecord(
            clientPublicKey: keys.client.publicKey, maskingKey: randomized.maskingKey,
            envelope: Envelope(nonce: nonce, tag: Tag(publishing: tag)))
        return RegistrationOutput(
            record: record, exportKey: keys.exportKey, serverPublicKey: response.serverPublicKey)
    }

    /// The result of a registration for the client.
    package struct RegistrationOutput: Sendable {
        /// The record to send to the server, sealed.
        package let record: RegistrationRecord
        /// 64 bytes for the application. Each login gives them again; the server never learns them. Source:
        /// §10.4.
        package let exportKey: Secret
        /// The server's key, to compare with the one that the client expects.
        package let serverPublicKey: Ristretto255.Element
    }
}

extension ServerKeys {
    /// The response to a registration. The server keeps no state until the record follows. Source: RFC 9807
    /// §5.2.2.
    ///
    /// `credential` identifies the account's credential: it is the same at each login, and unique to the
    /// account.
    package func respond(
        to request: RegistrationRequest, credential: [UInt8]
    ) throws(SealError) -> RegistrationResponse {
        RegistrationResponse(
            evaluated: try evaluate(request.blinded, credential: credential), serverPublicKey: publicKey)
    }
}
