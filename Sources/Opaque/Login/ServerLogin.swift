import CountersignSeal

/// A server's side of one login: `ke2` goes to the client, and its ``KE3`` to ``finish(_:)``. Not copyable, so that a login
/// is finished once. Source: RFC 9807 §6.2.2, §6.2.4.
///
/// `ke2` lets the client try one password, whether a ``KE3`` follows or not: the guess is counted when it is made.
package struct ServerLogin: ~Copyable, Sendable {
    /// The evaluation, the masked envelope and the server's MAC.
    package let ke2: KE2
    private let expectedMAC: Secret
    private let sessionKey: Secret

    /// `record` is the account's, or ``ServerKeys/fakeRecord`` where there is none: the work is the same, and so are the
    /// bytes but for random ones. `credential` is what it was at the registration.
    package init(
        _ ke1: KE1, record: RegistrationRecord, credential: [UInt8], as parties: Parties, context: LoginContext,
        keys: ServerKeys, random: some RandomSource = SystemRandom()
    ) throws(CryptographyFault) {
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

    /// The session key, 64 bytes, which the client has too: only where its MAC holds.
    package consuming func finish(_ ke3: KE3) throws(OpaqueRefusal) -> Secret {
        guard expectedMAC.equals(ke3.clientMAC) else { throw .clientNotAuthenticated }
        return sessionKey
    }
}
