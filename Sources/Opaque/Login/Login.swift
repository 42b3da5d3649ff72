import CountersignSeal

/// A client's side of one login: `ke1` goes to the server, and the server's ``KE2`` to
/// ``finish(_:as:context:stretching:)``. Not copyable, so that a blind and a key share are used once. Source:
/// RFC 9807 §6.2.1, §6.2.3.
package struct ClientLogin: ~Copyable, Sendable {
    /// The blinded password and this login's key share.
    package let ke1: KE1
    private let password: Password
    private let blind: Ristretto255.Scalar
    private let share: KeyPair

    /// Blinds the password; `random` gives the blind, the nonce and the share's seed, in this order.
    package init(_ password: Password, random: some RandomSource = SystemRandom()) throws(SealError) {
        let (blind, blinded) = try OPRF.blind(password, random: random)
        let nonce = Nonce(random: random)
        let share = try KeyPair(seed: random.secret(KeyPair.seedCount))
        self.password = password
        self.blind = blind
        self.share = share
        ke1 = KE1(blinded: blinded, nonce: nonce, keyShare: share.publicKey)
    }

    /// The result of a login for the client.
    package struct LoginOutput: Sendable {
        /// The message to send to the server.
        package let ke3: KE3
        /// 64 bytes; the server has the same key after it has verified `ke3`.
        package let sessionKey: Secret
        /// 64 bytes, the same at each login; the server never learns them.
        package let exportKey: Secret
        /// The key that the account was registered with.
        package let serverPublicKey: Ristretto255.Element
    }

    /// Makes the proof for the server and the keys. Stretching the password takes the time and memory of
    /// `stretching`. Throws `wrongPassword` or `serverNotAuthenticated`; the caller must then discard all
    /// values of this login.
    package consuming func finish(
        _ ke2: KE2, as parties: Parties, context: LoginContext, stretching: KeyStretchingFunction
    ) throws(OpaqueError) -> LoginOutput {
        let outcome: Result<LoginOutput, OpaqueError>
        do {
            outcome = try recover(ke2, as: parties, context: context, stretching: stretching)
        } catch {
            throw .cryptography(error)
        }
        return try outcome.get()
    }

    private func recover(
        _ ke2: KE2, as parties: Parties, context: LoginContext, stretching: KeyStretchingFunction
    ) throws(SealError) -> Result<LoginOutput, OpaqueError> {
        let randomized = try RandomizedPassword(
            password, blind: blind, evaluated: ke2.credentials.evaluated, stretching: stretching)
        let (serverKey, envelope) = ke2.credentials.unmask(with: randomized.maskingKey)
        let keys = try EnvelopeKeys(randomized, nonce: envelope.nonce)
        let tag = keys.tag(serverPublicKey: serverKey, parties: parties)
        // The tag is verified first: with a wrong password the server's key is random, and must give the same
        // error.
        guard tag.equals(envelope.tag), let serverPublicKey = Ristretto255.Element(serverKey) else {
            return .failure(.wrongPassword)
        }
        let exchange = try ClientExchange(
            ke2, after: ke1, share: share, keys: keys, serverPublicKey: serverPublicKey, as: parties,
            context: context)
        guard exchange.schedule.serverMAC().equals(ke2.serverMAC) else {
            return .failure(.serverNotAuthenticated)
        }
        return .success(
            LoginOutput(
                ke3: KE3(clientMAC: Tag(publishing: exchange.schedule.clientMAC(after: ke2.serverMAC))),
                sessionKey: exchange.schedule.sessionKey, exportKey: keys.exportKey,
                serverPublicKey: serverPublicKey))
    }
}

/// A server's side of one login: `ke2` goes to the client, and the client's ``KE3`` to ``finish(_:)``. Not
/// copyable, so that a login is finished once. Source: RFC 9807 §6.2.2, §6.2.4.
///
/// `ke2` lets the client try one password, whether or not a ``KE3`` follows, so count the guess when `ke2` is
/// made.
package struct ServerLogin: ~Copyable, Sendable {
    /// The evaluation, the masked envelope and the server's MAC.
    package let ke2: KE2
    private let expectedMAC: Secret
    private let sessionKey: Secret

    /// `record` is the account's, or ``ServerKeys/fakeRecord`` if the account does not exist: the work is the
    /// same, and the response differs only in bytes that are random to the client. `credential` is the same
    /// as at the registration.
    package init(
        _ ke1: KE1, record: RegistrationRecord, credential: [UInt8], as parties: Parties,
        context: LoginContext,
        keys: ServerKeys, random: some RandomSource = SystemRandom()
    ) throws(SealError) {
        self.init(
            try ServerExchange(
                ke1, record: record, credential: credential, as: parties, context: context, keys: keys,
                random: random))
    }

    init(_ exchange: ServerExchange) {
        ke2 = exchange.ke2
        expectedMAC = exchange.schedule.clientMAC(after: ke2.serverMAC)
        sessionKey = exchange.schedule.sessionKey
    }

    /// Bytes of ``state``.
    package static let stateCount = 128

    /// What ``finish(_:)`` needs, for another process that is to finish this login: the expected MAC and the
    /// session key. The caller ensures that one of them finishes it, once.
    package var state: Secret { Secret(joining: [expectedMAC, sessionKey]) }

    /// A login that another process began; nil if `state` is not 128 bytes.
    package init?(_ ke2: KE2, state: Secret) {
        guard state.count == ServerLogin.stateCount else { return nil }
        self.ke2 = ke2
        expectedMAC = state.part(0..<64)
        sessionKey = state.part(64..<128)
    }

    /// Verifies the client's MAC and returns the session key, 64 bytes, which the client also has.
    package consuming func finish(_ ke3: KE3) throws(OpaqueError) -> Secret {
        guard expectedMAC.equals(ke3.clientMAC) else { throw .clientNotAuthenticated }
        return sessionKey
    }
}
