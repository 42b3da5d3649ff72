/// What a row is: which scheme, over which transport, at whose server.
package struct RowProfile: Sendable {
    /// How the app authenticates.
    package enum Scheme: Sendable, Hashable {
        /// A rung of the login ladder, then a bearer token in a field: L5, L6.
        case ladder(LadderRung)
        /// L1, with a login of rung md5 and the token among the signed parameters.
        case formMD5
        /// The app signs with a key of its own, and says in a parameter whose money it is about: L2, L3, L4, SigV4.
        case apiKey(APIKeyScheme)
        /// Name and password over TLS, then bearer tokens: L6.
        case tokens
        /// The same of an app that signs nothing at our gateway either: scheme `token`.
        case token
        /// The same of an app whose tokens are its backend's: its routes are of level `open` at our gateway.
        case openRoute
        /// Countersign's own, the login with the password itself inside TLS.
        case messageSignaturesWithPassword
        /// Countersign whole.
        case countersign
    }

    package enum LadderRung: String, Sendable, CaseIterable {
        case plainGet = "plain-get"
        case plainPost = "plain-post"
        case base64, md5
        case md5Salt = "md5-salt"
        case hmacMD5 = "hmac-md5"
        case hmacMD5Time = "hmac-md5-time"
    }

    package enum APIKeyScheme: String, Sendable, CaseIterable {
        case authV1 = "auth-v1"
        case authV2 = "auth-v2"
        case authV4 = "auth-v4"
        case sigV4 = "sigv4"
    }

    /// What lies between app and server.
    package enum Transport: Sendable, Hashable {
        case plain
        /// TLS, and whom the app takes for its server.
        case tls(AppTrust)
    }

    /// What the app asks of a certificate.
    package enum AppTrust: Sendable, Hashable {
        /// That one of the device's authorities vouches for it. One of those is the attacker's.
        case anyAuthorityOfTheDevice
        /// That it is the pinned one; the host's name is not looked at.
        case pinnedWithoutHostCheck
        /// That it is the pinned one, with chain and name.
        case pinned
    }

    /// Who answers.
    package enum Server: Sendable, Hashable {
        /// A server as teams have it, flaws and all.
        case reference
        /// Ours, which serves the scheme.
        case gateway
        /// nginx, which asks our gateway about each request, and passes on to the bank itself what is let through.
        case nginxAsking
    }

    package let name: RowName
    /// In a sentence.
    package let summary: String
    package let scheme: Scheme
    package let transport: Transport
    package let server: Server

    package init(name: RowName, summary: String, scheme: Scheme, transport: Transport, server: Server) {
        self.name = name
        self.summary = summary
        self.scheme = scheme
        self.transport = transport
        self.server = server
    }

    /// Whether users sign in with a password.
    package var hasPasswords: Bool { if case .apiKey = scheme { false } else { true } }

    /// Whether a key or salt lies in the app. Behind the gateway every app signs its requests, and so needs one.
    package var hasAppKey: Bool {
        switch scheme {
        case .formMD5, .apiKey, .countersign, .messageSignaturesWithPassword, .ladder(.md5Salt), .ladder(.hmacMD5),
            .ladder(.hmacMD5Time):
            true
        case .ladder, .tokens: server != .reference
        case .token, .openRoute: false
        }
    }

    /// Whether it is Countersign's own protocol.
    package var isOurs: Bool { scheme == .countersign }
}
