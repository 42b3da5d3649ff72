import CountersignSeal

/// What the other side did wrong. What went wrong on ours is a ``CryptographyFault``.
package enum OpaqueRefusal: Error, Sendable, Hashable {
    /// Not a message of that kind: another length, or a point that is none, or is the identity.
    case malformed(MessageKind)
    /// The envelope did not open: a wrong password, a name that the registration was not for, no such account, or an
    /// answer that was changed on the way. Which one cannot be told. Source: RFC 9807 §4.1.3, EnvelopeRecoveryError.
    case wrongPassword
    /// The envelope opened, and the server's MAC does not hold: it has another key or another context, or the exchange
    /// was changed. Source: §6.4.3, ServerAuthenticationError.
    case serverNotAuthenticated
    /// The client's MAC does not hold. Source: §6.4.4, ClientAuthenticationError.
    case clientNotAuthenticated
}

/// The messages, and the lengths that they always have, in bytes.
package enum MessageKind: Sendable, CaseIterable {
    case registrationRequest, registrationResponse, registrationRecord, ke1, ke2, ke3

    /// Bytes.
    package var count: Int {
        switch self {
        case .registrationRequest: 32
        case .registrationResponse: 64
        case .registrationRecord: 192
        case .ke1: 96
        case .ke2: 320
        case .ke3: 64
        }
    }
}

/// How a step ends that either side can make fail.
package enum OpaqueFailure: Error, Sendable, Equatable {
    case refused(OpaqueRefusal)
    case fault(CryptographyFault)
}
