import CountersignTransport

/// A legacy client's options. Every default is the safe choice.
public struct LegacyOptions: Sendable {
    /// Where a request carries its token.
    public enum TokenPlace: Sendable, Hashable {
        /// As the scheme's existing clients do: form-md5 as a parameter, all others in a field.
        case asTheSchemeHasIt
        /// `userId` and `token` among form-md5's parameters, which the scheme signs.
        case formParameters
        /// `Authorization: Bearer`.
        case authorizationField
    }

    /// What a plain 401 means, one without a code in `err`.
    public enum Unauthorized: Sendable, Hashable {
        /// Nothing: the app reads it.
        case isAnAnswer
        /// The token expired, as with `-101`.
        case tokenRanOut
    }

    /// What outlives the process.
    public enum Remembering: Sendable, Hashable {
        /// Nothing: the app starts with the login page.
        case nothing
        /// The session's tokens.
        case session
        /// Also credentials that sign in again without the user, for servers without a login token. On the
        /// plain rungs and Base64 that is **the password**, on the others the value that replaces it at this
        /// server: a party that reads the vault can sign in until the password changes.
        case sessionAndWhatSignsInLikeThePassword
    }

    /// Where the client may send passwords and bearer tokens.
    public enum BearerSecrets: Sendable, Hashable {
        /// Only if the trust pins the server's own key or certificate, or an authority for it.
        case onlyToThePinnedCertificate
        /// Also to a server whose certificate is issued by any authority that the system trusts.
        case toAnyCertificateThatVerifies
        /// Also without TLS: every party on the path can read them. Needs ``CountersignOptions/Encryption``
        /// set to match.
        case inTheClearToWhoeverListens
    }

    /// Whether the user must confirm their presence before the session of an earlier process is used.
    public enum Gate: Sendable {
        /// Not needed: any user who starts the app is signed in.
        case none
        /// Once in each process. The vault stores the session sealed under a key that only presence releases:
        /// ``LegacyClient/resume()`` ends in ``CountersignState/locked``, and requests in the account's name
        /// are held back (``LegacyOptions/whenLocked``) until ``LegacyClient/unlock(_:)`` has succeeded. A
        /// login passes the gate, and binds its session's key to presence first. A session from before the
        /// app had the gate has none until the next login.
        case atLaunch(UserPresence)
    }

    /// Where requests carry their token.
    public var tokenPlace = TokenPlace.asTheSchemeHasIt
    /// The path that exchanges a login token for a new token, as `loginToken` in a form.
    public var renewalPath = "/login/token.php"
    /// The path that ends a session at the server, for ``LegacyClient/logOut()``; nil if the server has none.
    /// The token and the login token go there as they do with renewals and requests. A gateway has such a
    /// path if its policy `legacy-paths` names one.
    public var logoutPath: String?
    /// What a plain 401 means.
    public var unauthorized = Unauthorized.isAnAnswer
    /// What outlives the process.
    public var remembers = Remembering.session
    /// Whether the user must confirm their presence after a silent login.
    public var gate = Gate.none
    /// What a request in the account's name does at the gate: it fails with
    /// ``CountersignError/presenceNeeded``, or waits. A waiting request fails with
    /// ``CountersignError/accountChanged`` if an account signs in instead of passing the gate.
    public var whenLocked = CountersignOptions.Pause.fail
    /// The interceptors between the app and its server, the outermost first.
    public var interceptors: [any APIInterceptor] = []
    /// How often the client repeats a request after a temporary failure: only if its method is safe, since
    /// these servers cannot recognize a second copy of any other.
    public var retry = APIRetryPolicy.never
    /// Whether the server's cookies are kept, among them those that the response to a login sets.
    public var cookies = CountersignOptions.Cookies.ignored
    /// Where the client writes its log.
    public var log = CountersignLog.off
    /// Where the client may send passwords and bearer tokens.
    public var bearerSecrets = BearerSecrets.onlyToThePinnedCertificate
    /// TLS, or none for a server without it.
    public var encryption = CountersignOptions.Encryption.required
    /// Time-outs, the number of simultaneous requests, proxies; or a custom transport.
    public var transport = CountersignOptions.TransportChoice.standard(TransportOptions())
    /// The source of the time. The client does not correct it: a legacy server's time is not authenticated.
    public var clock = DeviceClock.system
    /// How values are read from JSON.
    public var json = JSONCoding.standard
    /// The most bytes of a response that is collected whole, and of a request's body that must be in memory
    /// to be signed.
    public var largestAnswer = 16 << 20
    /// Separates apps that share a vault: the account under which the vault stores the session.
    public var app = "app"
    /// Names the app in each request; not signed.
    public var userAgent = "countersign"

    /// The default options.
    public init() {}
}
