import CountersignTransport

/// How a legacy client goes about it. What is not named here is the safe choice.
public struct LegacyOptions: Sendable {
    /// Where a request bears its token.
    public enum TokenPlace: Sendable, Hashable {
        /// As clients of the scheme in the field do: form-md5 as a parameter, all others in a field.
        case asTheSchemeHasIt
        /// `userId` and `token` among form-md5's parameters, which signs them.
        case formParameters
        /// `Authorization: Bearer`.
        case authorizationField
    }

    /// What a plain 401 says, one without a code of L1's.
    public enum Unauthorized: Sendable, Hashable {
        /// Nothing: it is the app's to read.
        case isAnAnswer
        /// That the token ran out, as `-101` does.
        case tokenRanOut
    }

    /// What outlives the process.
    public enum Remembering: Sendable, Hashable {
        /// Nothing: the login page is the first thing that is seen.
        case nothing
        /// The session's tokens.
        case session
        /// Also what signs in again without the user, for servers that have no login token. On the plain rungs and Base64 that is
        /// **the password**, on the others what stands for it at this server: whoever reads the vault can sign in, for as long as
        /// the password is not changed.
        case sessionAndWhatSignsInLikeThePassword
    }

    /// Where passwords, and tokens that whoever reads them can use, may go.
    public enum BearerSecrets: Sendable, Hashable {
        /// Where the trust names the server's own key or certificate, or an authority for it.
        case onlyToThePinnedCertificate
        /// Also where only one of the system's many authorities says who is there.
        case toAnyCertificateThatVerifies
        /// Also without TLS: whoever is on the way has them. With ``CountersignOptions/Encryption`` named to match.
        case inTheClearToWhoeverListens
    }

    /// Whether somebody must show that he is there before the session of an earlier process is used.
    public enum Gate: Sendable {
        /// Nobody: whoever starts the app is signed in.
        case none
        /// Once in each process. The session lies in the vault sealed under a key that only presence lets
        /// out: ``LegacyClient/resume()`` ends in ``CountersignState/locked``, and what is asked in the
        /// account's name is held back (``LegacyOptions/whenLocked``) until ``LegacyClient/unlock(_:)`` has
        /// succeeded. Who signs in is through, and his next session's key is bound to his presence first. A
        /// session that was kept before an app had the gate has none until the next login.
        case atLaunch(UserPresence)
    }

    /// Where requests bear their token.
    public var tokenPlace = TokenPlace.asTheSchemeHasIt
    /// Where a login token is sent for a new token, as `loginToken` in a form.
    public var renewalPath = "/login/token.php"
    /// What a plain 401 says.
    public var unauthorized = Unauthorized.isAnAnswer
    /// What outlives the process.
    public var remembers = Remembering.session
    /// Whether somebody must be there after a silent login.
    public var gate = Gate.none
    /// What a request in the account's name does at the gate: it fails with
    /// ``CountersignError/presenceNeeded``, or waits. One that waits fails with
    /// ``CountersignError/accountChanged`` where somebody signs in in place of going through.
    public var whenLocked = CountersignOptions.Pause.fail
    /// Whoever stands between the app and its server, the outermost first.
    public var interceptors: [any APIInterceptor] = []
    /// Where passwords may go.
    public var bearerSecrets = BearerSecrets.onlyToThePinnedCertificate
    /// TLS, or for a server that has none, none.
    public var encryption = CountersignOptions.Encryption.required
    /// Time-outs, the number of requests at once, proxies; or a transport of one's own.
    public var carriage = CountersignOptions.Carriage.standard(TransportOptions())
    /// Where time comes from. Nobody corrects it: a legacy server's own time is a stranger's word.
    public var clock = DeviceClock.system
    /// How values are read from JSON.
    public var json = JSONCoding.standard
    /// Bytes of an answer that is collected whole, at most, and of a request's body that has to be in memory
    /// to be signed.
    public var largestAnswer = 16 << 20
    /// Tells apps apart that share a vault: the account under which the session lies there.
    public var app = "app"
    /// Names the app in each request; not signed.
    public var userAgent = "countersign"

    /// As above.
    public init() {}
}
