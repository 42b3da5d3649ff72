import CountersignSeal

/// Why a step of the protocol has no result. All cases but ``cryptography(_:)`` are errors of the other side.
/// A step that can fail on this side alone throws a ``SealError`` instead.
package enum OpaqueError: Error, Sendable, Hashable {
    /// The bytes are not a message of that kind: the length differs, or a point is invalid or the identity.
    case malformed(MessageKind)
    /// The envelope did not open: the password is wrong, the registration was for another name, the account
    /// does not exist, or the response was changed in transit. The client cannot tell which. Source: RFC 9807
    /// §4.1.3, EnvelopeRecoveryError.
    case wrongPassword
    /// The envelope opened, but the server's MAC is wrong: the server has another key or another context, or
    /// the exchange was changed in transit. Source: §6.4.3, ServerAuthenticationError.
    case serverNotAuthenticated
    /// The client's MAC is wrong. Source: §6.4.4, ClientAuthenticationError.
    case clientNotAuthenticated
    /// An error of this side: the cryptographic library failed.
    case cryptography(SealError)
}

/// The kinds of messages. Each has a fixed length.
package enum MessageKind: Sendable, CaseIterable {
    case registrationRequest, registrationResponse, registrationRecord, ke1, ke2, ke3

    /// The length in bytes.
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
