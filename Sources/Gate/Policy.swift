import CountersignSchemes

/// What an app's team has decided about its callers. Values only: how a policy is spelled (`--set K=V`) is
/// `Authority/PolicyTable`, where each setting is described once.
package struct Policy: Sendable, Equatable {
    /// Which schemes may speak. Legacy ones are never on unless named here.
    package var schemes: Set<SchemeName> = [.messageSignatures]
    /// Seconds either side of now within which a signature is fresh, for schemes that `windows` does not name.
    package var window: Int?
    package var windows: [SchemeName: Int] = [:]
    /// Seconds east of UTC of the wall clock that form-md5 clients send.
    package var timezoneOffset = 0
    /// Where form-md5's private key stands in the string to sign.
    package var formMD5Key = FormMD5.KeyPlace.pair
    /// Whether a refusal tells the caller its exact reason. For development: it helps an attacker a little, too.
    package var detail = RefusalDetail.coarse
    /// Fields, beyond the built-in ones, that may be forwarded although no signature covers them. Lower-case.
    package var forwardedFields: Set<String> = []

    /// Fields, beyond those of the scheme itself, that must be sent and signed. Lower-case.
    package var requiredFields: Set<String> = []
    /// The label of the signature that counts, where a message bears several; nil where its tag decides.
    package var signatureLabel: String?
    /// For schemes that know requests by their signature; `replays[scheme]` or unsafe-only.
    package var replays: [SchemeName: ReplayRule] = [:]
    /// Whether sigv4 requests may leave their body unsigned.
    package var unsignedPayload = Permission.refused
    /// The longest that a presigned sigv4 URL may live, in seconds; nil for the scheme's window.
    package var presignedLifetime: Int?
    /// Whether rsa-v1_5-sha256 keys may speak.
    package var rsaV15 = Permission.refused
    /// Whether the backend is sent a signed assertion with each request.
    package var assertion = Assertion.none
    /// Where clients of auth-v4 see this deployment: `https://api.example.com`; nil for where the request came to.
    package var publicURL: String?

    // What accounts and sessions go by. These are the app's own: all of its releases share its accounts.

    /// Which sessions of one account may live side by side.
    package var slots = SlotRule.single
    /// Who makes accounts.
    package var registration = Registration.admin
    /// Whether a password may be sent to sign in, over TLS.
    package var passwordLogin = Permission.refused
    /// Whether the login routes of old clients are answered.
    package var legacyLogin = Permission.refused
    /// Whether a login that brings the password itself takes its account off the ladder.
    package var legacyUpgrade = Permission.refused
    /// Whose the tokens of old clients are.
    package var legacySession = LegacySession.upstream
    /// Whether old clients renew their tokens, and so understand that one has run out.
    package var legacyRenewal = Permission.refused
    /// Where its old clients sign in, renew and sign out, beside or in place of the paths of old: see
    /// ``LegacyPath``.
    package var legacyPaths: [LegacyPath] = []
    /// What its old clients call their parameters, where it is not ``LegacyName/usual``.
    package var legacyNames: [LegacyName: String] = [:]
    /// The rung of accounts that old clients make; nil for the plain one of the method that they make it by.
    package var legacyRung: Rung?
    /// The host whose unsigned requests belong to this app. Lower-case, with a port where only that one is
    /// meant.
    package var legacyHost: String?
    /// Where the token of a request without a signature is read: exactly one of these places may have one.
    package var tokenPlaces: [RequestPlace] = [.bearer]
    /// Where such a request may state its user, which must be the session's.
    package var userPlaces: [RequestPlace] = [.form(Array("userId".utf8))]
    /// Where such a request states the app's version and its platform: the first that says something counts.
    package var releasePlaces: [RequestPlace] = []
    package var platformPlaces: [RequestPlace] = []
    /// Seconds for which a token is good.
    package var tokenLifetime: Int64 = 7_200
    /// Seconds for which a session lives without a refresh.
    package var sessionIdle: Int64 = 90 * 86_400
    /// How many upload tickets that are not used yet a session may have; 0 for none.
    package var uploadTickets = 0
    /// The longest, in seconds, that an upload ticket may live.
    package var uploadTicketLifetime: Int64 = 86_400
    /// What each of the backend's routes asks of its callers.
    package var routes = RouteRules(all: .signed)
    /// Whether requests that fail to prove who they are reach the backend, where their route does not say
    /// otherwise.
    package var enforcement = Enforcement.enforce

    package enum Registration: Sendable, Equatable { case open, admin }
    package enum LegacySession: Sendable, Equatable { case upstream, authority }
    package enum RefusalDetail: Sendable, Equatable { case coarse, exact }
    package enum Assertion: Sendable, Equatable { case none, signed }
    package enum Permission: Sendable, Equatable { case refused, allowed }

    /// Which requests of a scheme without nonces are let through once only. Source: docs/protocol.md, the table of
    /// replay keys.
    package enum ReplayRule: String, Sendable, CaseIterable {
        /// All of them: two honest, identical calls within a second are one too many.
        case strict
        /// Those that change something: GET and HEAD may repeat.
        case unsafeOnly = "unsafe-only"
        /// None.
        case off
    }

    package init() {}

    /// Seconds either side of now for that scheme: the app's own, else the scheme's.
    package func window(for scheme: SchemeName) -> Int {
        windows[scheme] ?? window ?? scheme.defaultWindow
    }
}
