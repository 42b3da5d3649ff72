import CountersignSchemes
import CountersignSeal
import CountersignWire

/// A server that speaks the schemes from before, and not our protocol, as one version of an app faces it. It signs nothing that it
/// says, so all that is known of an answer is whose certificate the connection was made to. Source: docs/protocol.md.
package struct LegacyServer: Sendable {
    /// The `Host` field of what is sent there.
    package var host: String
    package var transport: Request.Transport
    package var signing: LegacySigning
    /// How users sign in; nil where they do not, or by requests of the app's own.
    package var login: LegacyDoor?
    package var tokens = LegacyTokens()
    package var userAgent: String
    package var channel: Installation.Channel
    package var bearerSecrets = BearerSecrets.onlyToThePinnedCertificate

    /// Where a password, or a token that whoever reads it can use, is sent.
    package enum BearerSecrets: Sendable {
        case onlyToThePinnedCertificate
        /// Also where only one of the system's many authorities says who is there.
        case toAnyCertificateThatVerifies
        /// Also without TLS: whoever is on the way has them.
        case inTheClearToWhoeverListens
    }

    package init(
        host: String, transport: Request.Transport, signing: LegacySigning, userAgent: String,
        channel: Installation.Channel
    ) {
        self.host = host
        self.transport = transport
        self.signing = signing
        self.userAgent = userAgent
        self.channel = channel
    }

    /// What cannot be done at all: a scheme that does not sign what it would be given. Nil where nothing is.
    package var flaw: String? {
        if let login, case .likeRequests = login.signing, signing.name == .authV4, login.rung.door != .query {
            return "auth-v4 signs no forms: a login that is one goes unsigned, or as plain-get"
        }
        if case .formParameters = tokens.place, signing.name != .formMD5 {
            return "userId and token are parameters of form-md5 alone"
        }
        return nil
    }

    /// Throws where a password or a token must not go to this server.
    func requireBearerSecretsAllowed() throws(LegacyProblem) {
        switch (transport, channel, bearerSecrets) {
        case (_, _, .inTheClearToWhoeverListens), (.tls, .pinned, _), (.tls, .open, .toAnyCertificateThatVerifies):
            return
        case (.tls, .open, .onlyToThePinnedCertificate): throw .certificateNotPinned
        case (.plain, _, _): throw .notOverTLS
        }
    }
}

/// How requests are signed.
package enum LegacySigning: Sendable {
    /// They are not.
    case none
    case scheme(any Scheme, Credentials)

    /// What has to be known of a body before a request with it is signed.
    package enum BodyNeed: Sendable, Equatable {
        /// All of it: the scheme signs what stands in it.
        case bytes
        /// Its MD5.
        case md5
        /// Nothing: the scheme does not sign it.
        case nothing
    }

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

/// How users sign in: by which rung of the login ladder, and where. Source: docs/protocol.md, "The login ladder".
package struct LegacyDoor: Sendable {
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

    package init(_ rung: Rung, _ settings: LadderSettings, path: String? = nil, signing: Signing = .likeRequests) {
        self.rung = rung
        self.settings = settings
        self.path = path
        self.signing = signing
    }
}

/// What becomes of the tokens that a login's answer brought. Source: legacy, L6.
package struct LegacyTokens: Sendable {
    /// Where a request bears its token.
    package enum Place: Sendable {
        /// `userId` and `token` among form-md5's parameters, which signs them.
        case formParameters
        /// `Authorization: Bearer`.
        case authorizationField
    }

    /// What an answer 401 says that bears no code of ours.
    package enum Unauthorized: Sendable {
        /// Nothing: it is the app's to read.
        case isAnAnswer
        /// That the token ran out.
        case tokenRanOut
    }

    package var place = Place.authorizationField
    /// Where a login token is sent for a new token.
    package var renewalPath = "/login/token.php"
    package var unauthorized = Unauthorized.isAnAnswer

    package init() {}
}
