/// Who is signed in at a legacy server, as far as is known here.
package enum LegacyStanding: Sendable, Equatable {
    case signedOut(LegacyEnd)
    case active(account: String, userID: Int64)
    /// The vault opens when the device does.
    case locked
    /// The session comes out of the vault only with somebody present.
    case presenceNeeded
    /// What is kept cannot be read now: nothing is concluded from it.
    case unavailable
    /// Nothing is sent until ``LegacyAccount/resume()``; the link is where the new version is.
    case updateRequired(String?)
}

/// Why nobody is signed in.
package enum LegacyEnd: Sendable, Equatable {
    /// Nothing is kept here.
    case nobodyWas
    /// The user signed out, here or in another process.
    case byUser
    /// The server's `-100`: the token ran out, or the account signed in on another device; legacy servers do not say which, ours do.
    case ended(Notice)
    /// The token ran out, and there is nothing that gets another.
    case ranOut
    /// What was remembered does not open the account any more.
    case credentialsRefused
}
