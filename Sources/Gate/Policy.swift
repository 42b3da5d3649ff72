import CountersignSchemes

/// What an app's team has decided about its callers. Values only; the authority's table of policy keys
/// describes each setting and its syntax (`--set K=V`).
package struct Policy: Sendable, Equatable {
    /// The allowed schemes. A legacy scheme is allowed only if it is named here.
    package var schemes: Set<SchemeName> = [.messageSignatures]
    /// Seconds either side of now within which a signature is fresh, for schemes that `windows` does not
    /// name.
    package var window: Int?
    package var windows: [SchemeName: Int] = [:]
    /// Seconds east of UTC of the wall clock that form-md5 clients send.
    package var timezoneOffset = 0
    /// Where form-md5's private key stands in the string to sign.
    package var formMD5Key = FormMD5.KeyPosition.pair
    /// Whether a refusal states its exact reason to the caller. For development: it also helps an attacker
    /// slightly.
    package var detail = RefusalDetail.coarse
    /// Fields, beyond the built-in ones, that may be forwarded although no signature covers them. Lower-case.
    package var forwardedFields: Set<String> = []

    /// Fields, beyond those of the scheme itself, that must be sent and signed. Lower-case.
    package var requiredFields: Set<String> = []
    /// The label of the signature that counts, where a message bears several; nil where its tag decides.
    package var signatureLabel: String?
    /// For schemes whose replay key is the signature; unsafe-only for schemes not listed.
    package var replays: [SchemeName: ReplayRule] = [:]
    /// Whether sigv4 requests may leave their body unsigned.
    package var unsignedPayload = Permission.refused
    /// The longest lifetime of a presigned sigv4 URL, in seconds; nil for the scheme's window.
    package var presignedLifetime: Int?
    /// Whether rsa-v1_5-sha256 keys are allowed.
    package var rsaV15 = Permission.refused
    /// Whether the gateway sends the backend a signed assertion with each request.
    package var assertion = Assertion.none
    /// The public URL of this deployment for auth-v4 clients, such as `https://api.example.com`; nil for the
    /// URL that received the request.
    package var publicURL: String?

    // Settings of accounts and sessions. They belong to the app, because all of its releases share its
    // accounts.

    /// Which sessions of one account may exist side by side.
    package var slots = SlotRule.single
    /// Whether only an administrator or also a client may create accounts.
    package var registration = Registration.admin
    /// Whether a password may be sent to sign in, over TLS.
    package var passwordLogin = Permission.refused
    /// The fewest characters of a new password. Source: NIST SP 800-63B §3.1.1.2.
    package var passwordMinimum = 8
    /// The path of a sorted list of SHA-1 hashes of passwords that no new password may be.
    package var breachedPasswords: String?
    /// Whether the gateway answers the login routes of legacy clients.
    package var legacyLogin = Permission.refused
    /// Whether a login that sends the password itself moves its account off the login ladder.
    package var legacyUpgrade = Permission.refused
    /// Whether the authority or the backend issues the tokens of legacy clients.
    package var legacySession = LegacySession.upstream
    /// Whether legacy clients renew their tokens, and so understand that a token has expired.
    package var legacyRenewal = Permission.refused
    /// The paths at which the app's legacy clients sign in, renew and sign out, beside or instead of the
    /// default paths; see ``LegacyPath``.
    package var legacyPaths: [LegacyPath] = []
    /// The parameter names of the app's legacy clients that differ from ``LegacyName/defaultName``.
    package var legacyNames: [LegacyName: String] = [:]
    /// The rung of accounts that legacy clients create; nil for the plain rung of the method by which they
    /// create the account.
    package var legacyRung: Rung?
    /// The host whose unsigned requests belong to this app. In lower case; with a port if only that port is
    /// meant.
    package var legacyHost: String?
    /// Where the gate reads the token of a request without a signature. At most one of these places may have
    /// one.
    package var tokenLocations: [ValueLocation] = [.bearer]
    /// Where such a request may state its user, which must be the session's subject.
    package var userLocations: [ValueLocation] = [.form(Array("userId".utf8))]
    /// Where such a request states the app's version; the first place with a value counts.
    package var releaseLocations: [ValueLocation] = []
    /// The same for the app's platform.
    package var platformLocations: [ValueLocation] = []
    /// Seconds for which a token is valid.
    package var tokenLifetime: Int64 = 7_200
    /// Seconds after which a session ends without a refresh.
    package var sessionIdle: Int64 = 90 * 86_400
    /// Seconds after its login after which a session ends, however often it is renewed; nil for never.
    package var sessionMax: Int64?
    /// How many unused upload tickets a session may have; 0 for none.
    package var uploadTickets = 0
    /// The longest lifetime of an upload ticket, in seconds.
    package var uploadTicketLifetime: Int64 = 86_400
    /// What each of the backend's routes requires of its callers.
    package var routes = RouteRules(all: .signed)
    /// Whether requests that fail verification are refused or forwarded and marked, unless their route has
    /// its own setting.
    package var enforcement = Enforcement.enforce

    /// Rates, addresses, maintenance and origins.
    package var traffic = TrafficRules()

    package enum Registration: Sendable, Equatable { case open, admin }
    package enum LegacySession: Sendable, Equatable { case upstream, authority }
    package enum RefusalDetail: Sendable, Equatable { case coarse, exact }
    package enum Assertion: Sendable, Equatable { case none, signed }
    package enum Permission: Sendable, Equatable { case refused, allowed }

    /// Which requests of a scheme without nonces are admitted only once. Source: docs/protocol.md, the table
    /// of replay keys.
    package enum ReplayRule: String, Sendable, CaseIterable {
        /// All requests: of two honest, identical calls within a second, the second is refused.
        case strict
        /// Requests that change something; GET and HEAD may repeat.
        case unsafeOnly = "unsafe-only"
        /// None.
        case off
    }

    package init() {}

    /// Seconds either side of now for that scheme: the app's own, else the scheme's.
    package func window(for scheme: SchemeName) -> Int {
        windows[scheme] ?? window ?? scheme.traits.defaultWindow
    }

    var schemeSettings: SchemeSettings {
        SchemeSettings(publicURL: publicURL.map { Array($0.utf8) }, formMD5Key: formMD5Key)
    }
}

/// The paths at which an app's legacy clients call the authority outside its prefix (policy `legacy-paths`).
/// Source: docs/protocol.md, "The login ladder".
extension Policy {
    /// The operation that such a path serves.
    package enum LegacyEndpoint: String, Sendable, CaseIterable {
        case login, logout, token
        case signUp = "signup"
        case password
    }

    /// One path of a legacy endpoint, compared byte for byte.
    package struct LegacyPath: Sendable, Equatable {
        package let endpoint: LegacyEndpoint
        /// Begins with `/`; visible ASCII with one reading (`PathReadings`).
        package let path: [UInt8]

        package init(_ door: LegacyEndpoint, at path: [UInt8]) {
            self.endpoint = door
            self.path = path
        }
    }

    /// The meaning of a legacy client's parameter or of a member of the response.
    package enum LegacyName: String, Sendable, CaseIterable {
        case account, password
        case newPassword = "new-password"
        case token
        case loginToken = "login-token"
        case user

        /// The name that legacy clients use unless the policy sets another.
        package var defaultName: String {
            switch self {
            case .account: "username"
            case .password: "password"
            case .newPassword: "newPassword"
            case .token: "token"
            case .loginToken: "loginToken"
            case .user: "userId"
            }
        }
    }

    /// The name of that parameter for the app's legacy clients.
    package func parameter(_ name: LegacyName) -> String { legacyNames[name] ?? name.defaultName }
}
