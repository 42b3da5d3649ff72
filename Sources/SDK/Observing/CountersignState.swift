/// What an app shows: its login page, its home page, a lock, or the link to its next version.
public enum CountersignState: Sendable, Hashable {
    /// Why no account is signed in.
    public enum SignedOutReason: Sendable, Hashable {
        /// No account has signed in here yet.
        case nobody
        /// The session is over: the user signed out, or the authority has ended it.
        case ended(SessionEnd)
    }

    /// The login page.
    case signedOut(SignedOutReason)
    /// An account is signed in, whether or not the server has responded since.
    case active(CountersignAccount)
    /// A user must act: confirm their presence, or unlock a keychain. The session stands.
    case locked
    /// The stored state has not been read yet, or cannot be read. The session is unknown, so nothing is
    /// concluded.
    case unavailable
    /// The authority no longer serves this version; the next one is at the address, if the authority named
    /// one. Requests pause.
    case updateRequired(url: String?)
}

/// The signed-in account.
public struct CountersignAccount: Sendable, Hashable {
    /// In canonical form, as the authority has it.
    public let name: String
    /// The session's id: it is shown to people, and opens nothing.
    public let session: String

    /// From its parts.
    public init(name: String, session: String) {
        self.name = name
        self.session = session
    }
}

/// How a session ended, as the authority's signed response says; only ``How-swift.enum/deviceKeyLost`` is
/// this device's own finding.
public struct SessionEnd: Sendable, Hashable {
    /// What ended it.
    public enum How: Sendable, Hashable {
        /// It was idle for too long.
        case expired
        /// A login replaced it, on a device of this class (`phone`, `desktop`…) if the authority named one.
        case replaced(by: String?)
        /// Its own device, or another of the account's, ended it.
        case signedOut
        /// An administrator ended it.
        case revoked
        /// A key that had been renewed was used again: an attacker has a copy of this device's vault, or the
        /// vault was restored to an older state.
        case reused
        /// The password was changed from another device, or with a reset code.
        case passwordChanged
        /// The account is locked or removed.
        case disabled
        /// The server was restored from a backup.
        case restored
        /// This device's hardware does not have its keys any more: the vault was copied from another device,
        /// or the hardware was replaced. The session has ended here, and needs a login; the server lists it
        /// until it is ended or idle for too long.
        case deviceKeyLost
        /// There was no session. The request needs one, and was sent without it.
        case never
        /// Another reason, in the server's word, or none.
        case other(String)
    }

    /// What ended it.
    public let how: How
    /// When, in whole Unix seconds; nil if the authority did not say.
    public let at: Int64?

    /// From its parts.
    public init(_ how: How, at: Int64? = nil) {
        self.how = how
        self.at = at
    }
}
