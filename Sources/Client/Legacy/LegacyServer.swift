import CountersignSchemes
import CountersignSeal
import CountersignWire

/// A server that speaks the legacy schemes and not our protocol, as one version of an app sees it. It signs
/// no response, so the client knows about a response only the certificate of the connection. Source:
/// docs/protocol.md.
package struct LegacyServer: Sendable {
    /// The `Host` field of the requests.
    package var host: String
    package var transport: Request.Transport
    package var signing: LegacySigningMethod
    /// How users sign in; nil if they do not, or by requests of the app's own.
    package var login: LegacyLoginRoute?
    package var tokens = LegacyTokens()
    package var userAgent: String
    package var channel: Installation.Channel
    package var bearerSecrets = Installation.BearerSecrets.onlyToThePinnedCertificate

    package init(
        host: String, transport: Request.Transport, signing: LegacySigningMethod, userAgent: String,
        channel: Installation.Channel
    ) {
        self.host = host
        self.transport = transport
        self.signing = signing
        self.userAgent = userAgent
        self.channel = channel
    }

    /// What cannot work at all: a scheme that does not sign what it would be given. Nil if there is no such
    /// flaw.
    package var flaw: String? {
        if let login, case .likeRequests = login.signing, signing.name == .authV4,
            login.rung.endpoint != .query
        {
            return "auth-v4 signs no forms: a login that is one goes unsigned, or as plain-get"
        }
        if case .formParameters = tokens.place, signing.name != .formMD5 {
            return "userId and token are parameters of form-md5 alone"
        }
        return nil
    }

    /// Throws if a password or a token must not go to this server.
    func requireBearerSecretsAllowed() throws(ClientOperationError) {
        switch (transport, channel, bearerSecrets) {
        case (_, _, .inTheClearToWhoeverListens), (.tls, .pinned, _),
            (.tls, .open, .toAnyCertificateThatVerifies):
            return
        case (.tls, .open, .onlyToThePinnedCertificate): throw .certificateNotPinned
        case (.plain, _, _): throw .notOverTLS
        }
    }
}

/// How requests are signed.
package enum LegacySigningMethod: Sendable {
    /// Requests are not signed.
    case none
    case scheme(any Scheme, Credentials)

    /// `isForm`: whether the body is `application/x-www-form-urlencoded`.
    package func need(ofFormBody isForm: Bool) -> BodyNeed {
        switch name {
        case nil: .nothing
        case .authV1?: isForm ? .bytes : .md5
        case .authV2?: isForm ? .bytes : .nothing
        default: .bytes
        }
    }

    var name: SchemeName? { if case .scheme(let scheme, _) = self { scheme.name } else { nil } }
}

/// How users sign in: the rung of the login ladder, and the route. Source: docs/protocol.md, "The login
/// ladder".
package struct LegacyLoginRoute: Sendable {
    package var rung: Rung
    package var settings: LadderSettings
    /// Another path than the rung's own.
    package var path: String?
    package var signing: Signing

    package enum Signing: Sendable {
        /// Like all other requests.
        case likeRequests
        case none
    }

    package init(
        _ rung: Rung, settings: LadderSettings, path: String? = nil, signing: Signing = .likeRequests
    ) {
        self.rung = rung
        self.settings = settings
        self.path = path
        self.signing = signing
    }
}

/// How the client uses the tokens of a login's response. Source: docs/protocol.md, "Bearer sessions".
package struct LegacyTokens: Sendable {
    /// Where a request carries its token.
    package enum Place: Sendable {
        /// `userId` and `token` among form-md5's parameters, which the scheme signs.
        case formParameters
        /// `Authorization: Bearer`.
        case authorizationField
    }

    /// What a response 401 without a code of ours means.
    package enum Unauthorized: Sendable {
        /// Nothing: the app reads it.
        case isAnAnswer
        /// The token expired.
        case tokenExpired
    }

    package var place = Place.authorizationField
    /// The path that exchanges a login token for a new token.
    package var renewalPath = "/login/token.php"
    /// The path that ends the session of a token; nil if the server has none.
    package var logoutPath: String?
    package var unauthorized = Unauthorized.isAnAnswer

    package init() {}
}
