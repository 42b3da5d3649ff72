import CountersignVault

/// Why a client of a legacy server did not get what it asked for. Each case is another thing to do.
package enum LegacyProblem: Error, Sendable {
    /// Nobody is signed in here. Nothing was sent.
    case notSignedIn
    /// Somebody else signed in while the request was on its way. It was not sent in his name.
    case accountChanged
    /// The session is over, by the server's word (`-100`), or because it ran out and nothing here could renew it.
    case sessionEnded(Notice)
    /// The name or the password is wrong.
    case wrongCredentials
    /// This version of the app is retired (`-99`). Nothing is sent any more.
    case updateRequired(Notice)
    /// The server said no. Nothing changed here.
    case refused(Notice)
    case transport(TransportProblem)
    /// The answer is none that this build understands.
    case notUnderstood(String)
    /// The request is none that the scheme can sign.
    case notSignable(String)
    /// A secret would go to a certificate that was not named for this server. Nothing was sent.
    case certificateNotPinned
    /// A secret would go out in the clear. Nothing was sent.
    case notOverTLS
    /// The session comes out of the vault only with somebody present, and nobody has shown that he is there.
    case presenceNeeded
    /// The body can be sent once only, and was, in part or whole. With another body the request would be let
    /// in.
    case bodyUsedUp
    case vault(VaultProblem)
}
