/// What an app shows: its login page, its home page, a lock, or the way to its next version.
public enum CountersignState: Sendable, Hashable {
    /// Why nobody is signed in.
    public enum SignedOutReason: Sendable, Hashable {
        /// Nobody has signed in here yet.
        case nobody
        /// Somebody had, and his session is over: he signed out, or the authority has ended it.
        case ended(SessionEnd)
    }

    /// The login page.
    case signedOut(SignedOutReason)
    /// Somebody is signed in. That the server has not been heard of since does not matter.
    case active(CountersignAccount)
    /// Something needs a person: a presence, or a keychain that is locked. The session stands.
    case locked
    /// What is kept here has not been read yet, or cannot be. Nothing is known of the session, so nothing is concluded.
    case unavailable
    /// The authority serves this version no more; the next one is at the address, where it named one. Requests pause.
    case updateRequired(url: String?)
}

/// Who is signed in.
public struct CountersignAccount: Sendable, Hashable {
    /// In its one spelling, as the authority has it.
    public let name: String
    /// The session's id: it is shown to people, and opens nothing.
    public let session: String

    /// From its parts.
    public init(name: String, session: String) {
        self.name = name
        self.session = session
    }
}
