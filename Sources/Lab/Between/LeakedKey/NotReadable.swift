/// Why a key opens nothing in a conversation.
package enum NotReadable: Error, Sendable, Equatable, CustomStringConvertible {
    /// There is no TLS in it, or it does not begin at its beginning.
    case noHandshake(String)
    /// The suite is one that this reader was not taught. Says nothing about the key.
    case unknownSuite(UInt16)
    /// The keys were agreed upon with keys of the moment that are in no recording. Everything that the leaked key gives was tried; with what
    /// that was.
    case needsEphemeralKey(tried: String)
    /// It resumes a session whose secret was agreed upon before.
    case resumesUnknownSession
    /// The suite is one that the server's key opens; this is another server's.
    case isOfAnotherKey

    package var description: String {
        switch self {
        case .noHandshake(let what): "no handshake to read: \(what)"
        case .unknownSuite(let number): "suite 0x\(String(number, radix: 16)) is not known"
        case .needsEphemeralKey(let tried): "needs an ephemeral key that is in no recording; \(tried)"
        case .resumesUnknownSession: "resumes a session that was not recorded, or was not readable"
        case .isOfAnotherKey: "was not encrypted to this key"
        }
    }
}
