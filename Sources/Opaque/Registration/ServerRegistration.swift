import CountersignSeal

extension ServerKeys {
    /// The answer to a registration. Nothing has to be kept for the record that follows. Source: RFC 9807 §5.2.2.
    ///
    /// `credential` names the account's credential: the same at each login, and no other account's.
    package func respond(
        to request: RegistrationRequest, credential: [UInt8]
    ) throws(CryptographyFault) -> RegistrationResponse {
        RegistrationResponse(
            evaluated: try evaluate(request.blinded, credential: credential), serverPublicKey: publicKey)
    }
}
