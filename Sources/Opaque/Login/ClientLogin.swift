import CountersignSeal

/// A client's side of one login: `ke1` goes to the server, and its ``KE2`` to ``finish(_:as:context:stretching:)``. Not
/// copyable, so that a blind and a key share are used once. Source: RFC 9807 §6.2.1, §6.2.3.
package struct ClientLogin: ~Copyable, Sendable {
    /// The blinded password and this login's key share.
    package let ke1: KE1
    private let password: Password
    private let blind: Ristretto255.Scalar
    private let share: KeyPair

    /// Blinds the password; `random` gives the blind, the nonce and the share's seed, in this order.
    package init(_ password: Password, random: some RandomSource = SystemRandom()) throws(CryptographyFault) {
        let (blind, blinded) = try OPRF.blind(password, random: random)
        let nonce = Nonce(random: random)
        let share = try KeyPair(seed: random.secret(KeyPair.seedCount))
        self.password = password
        self.blind = blind
        self.share = share
        ke1 = KE1(blinded: blinded, nonce: nonce, keyShare: share.publicKey)
    }

    /// What a login gives the client.
    package struct LoggedIn: Sendable {
        /// Goes to the server.
        package let ke3: KE3
        /// 64 bytes, which the server has too once it took `ke3`.
        package let sessionKey: Secret
        /// 64 bytes, the same at each login, which the server never learns.
        package let exportKey: Secret
        /// The key that the account was registered with.
        package let serverPublicKey: Ristretto255.Element
    }

    /// The proof for the server and the keys. Stretches the password, which takes as long and as much memory as `stretching`
    /// says. Refuses with `wrongPassword` or `serverNotAuthenticated`; nothing learnt before may be used then.
    package consuming func finish(
        _ ke2: KE2, as parties: Parties, context: LoginContext, stretching: KeyStretching
    ) throws(OpaqueFailure) -> LoggedIn {
        let outcome: Result<LoggedIn, OpaqueRefusal>
        do {
            outcome = try recover(ke2, as: parties, context: context, stretching)
        } catch {
            throw .fault(error)
        }
        do {
            return try outcome.get()
        } catch {
            throw .refused(error)
        }
    }

    private func recover(
        _ ke2: KE2, as parties: Parties, context: LoginContext, _ stretching: KeyStretching
    ) throws(CryptographyFault) -> Result<LoggedIn, OpaqueRefusal> {
        let randomized = try RandomizedPassword(
            password, blind: blind, evaluated: ke2.credentials.evaluated, stretching)
        let (serverKey, envelope) = ke2.credentials.unmask(with: randomized.maskingKey)
        let keys = try EnvelopeKeys(randomized, nonce: envelope.nonce)
        let tag = keys.tag(serverPublicKey: serverKey, parties)
        // The tag first: behind a wrong password the key is noise, and must fail as everything else does.
        guard tag.equals(envelope.tag), let serverPublicKey = Ristretto255.Element(serverKey) else {
            return .failure(.wrongPassword)
        }
        let exchange = try ClientExchange(
            ke2, after: ke1, share: share, keys: keys, serverPublicKey: serverPublicKey, as: parties,
            context: context)
        guard exchange.schedule.serverMAC().equals(ke2.serverMAC) else { return .failure(.serverNotAuthenticated) }
        return .success(
            LoggedIn(
                ke3: KE3(clientMAC: Tag(publishing: exchange.schedule.clientMAC(after: ke2.serverMAC))),
                sessionKey: exchange.schedule.sessionKey, exportKey: keys.exportKey, serverPublicKey: serverPublicKey))
    }
}
