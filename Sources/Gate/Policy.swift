import CountersignSchemes

/// What an app's team has decided about its callers. Values only: how a policy is spelled (`--set K=V`) is
/// `Authority/PolicyText`, where each setting is described once.
package struct Policy: Sendable, Equatable {
    /// Which schemes may speak. Legacy ones are never on unless named here.
    package var schemes: Set<SchemeName> = [.messageSignatures]
    /// Seconds either side of now within which a signature is fresh, for schemes that `windows` does not name.
    package var window: Int?
    package var windows: [SchemeName: Int] = [:]
    /// Seconds east of UTC of the wall clock that form-md5 clients send.
    package var timezoneOffset = 0
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
