/// A row of the matrix: scheme, transport and server.
package struct RowProfile: Sendable {
    /// How the app authenticates.
    package enum Scheme: Sendable, Hashable {
        /// A rung of the login ladder, then a bearer token in a field.
        case ladder(LadderRung)
        /// `form-md5`, with a login of rung md5 and the token among the signed parameters.
        case formMD5
        /// The app signs with one key for all users, and names the account in a parameter: `auth-v1`,
        /// `auth-v2`, `auth-v4`, `sigv4`.
        case apiKey(APIKeyScheme)
        /// Name and password over TLS, then bearer tokens.
        case tokens
        /// The same for an app that signs nothing at the gateway either: scheme `token`.
        case token
        /// The same for an app whose backend issues its tokens: its routes have the level `open` at the
        /// gateway.
        case openRoute
        /// Countersign's message signatures; the login sends the password inside TLS.
        case messageSignaturesWithPassword
        /// The complete Countersign protocol.
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

    /// The transport between app and server.
    package enum Transport: Sendable, Hashable {
        case plain
        /// TLS, with the certificates that the app accepts.
        case tls(AppTrust)
    }

    /// The requirements of the app on a certificate.
    package enum AppTrust: Sendable, Hashable {
        /// It is issued by one of the device's trusted authorities, one of which is the attacker's.
        case anyAuthorityOfTheDevice
        /// It has the pinned key; the host name is not checked.
        case pinnedWithoutHostCheck
        /// It has the pinned key, and chain and host name are valid.
        case pinned
    }

    /// The server that answers.
    package enum Server: Sendable, Hashable {
        /// A typical legacy server with its known flaws: ``ReferenceServer``.
        case reference
        /// The Countersign gateway, which serves the scheme.
        case gateway
        /// nginx, which asks the gateway about each request, and forwards accepted requests to the bank.
        case nginxAsking
    }

    package let name: RowName
    /// A description in one sentence.
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

    /// Whether the app contains a key or salt. Behind the gateway every app that signs its requests needs
    /// one.
    package var hasAppKey: Bool {
        switch scheme {
        case .formMD5, .apiKey, .countersign, .messageSignaturesWithPassword, .ladder(.md5Salt),
            .ladder(.hmacMD5),
            .ladder(.hmacMD5Time):
            true
        case .ladder, .tokens: server != .reference
        case .token, .openRoute: false
        }
    }

    /// Whether it is Countersign's own protocol.
    package var isOurs: Bool { scheme == .countersign }
}

/// All rows, in the order of the table.
package enum RowCatalogue {
    package static let all: [RowProfile] = legacy + [openRoute] + ours

    /// Each legacy scheme twice: at a reference server, and at the gateway. At the gateway the apps and their
    /// trust are the same; a scheme without TLS gets it there.
    private static let legacy: [RowProfile] = schemes.flatMap { name, summary, scheme, transport in
        [
            RowProfile(
                name: RowName(name), summary: "\(summary); a server as teams have it", scheme: scheme,
                transport: transport, server: .reference),
            RowProfile(
                name: RowName("\(name)+gateway"), summary: "\(summary); served by our gateway",
                scheme: scheme,
                transport: transport == .plain ? .tls(.anyAuthorityOfTheDevice) : transport,
                server: .gateway),
        ]
    }

    private static let schemes: [(String, String, RowProfile.Scheme, RowProfile.Transport)] = [
        ("plain-get", "password in the query of a GET, then a token", .ladder(.plainGet), .plain),
        ("plain-post", "password in a form, then a token", .ladder(.plainPost), .plain),
        ("base64", "Base64 of the password, then a token", .ladder(.base64), .plain),
        ("md5", "MD5 of the password, then a token", .ladder(.md5), .plain),
        ("md5-salt", "MD5 of password and the app's salt, then a token", .ladder(.md5Salt), .plain),
        ("hmac-md5", "HMAC-MD5 of the password under the app's key, then a token", .ladder(.hmacMD5), .plain),
        ("hmac-md5-time", "HMAC-MD5 of password and minute, then a token", .ladder(.hmacMD5Time), .plain),
        ("form-md5", "form parameters under an MD5 with the app's key", .formMD5, .plain),
        ("auth-v1", "HMAC-SHA256 over query parameters", .apiKey(.authV1), .plain),
        ("auth-v2", "HMAC-SHA256 over query parameters, the timestamp left out", .apiKey(.authV2), .plain),
        ("auth-v4", "HMAC-SHA256 over a JSON body, in fields", .apiKey(.authV4), .plain),
        ("sigv4", "AWS Signature Version 4 with one key for the app", .apiKey(.sigV4), .plain),
        ("tokens-tls", "login and bearer tokens over TLS", .tokens, .tls(.anyAuthorityOfTheDevice)),
        (
            "tokens-pinned-no-host-check",
            "login and bearer tokens over TLS, certificate pinned, name unchecked",
            .tokens, .tls(.pinnedWithoutHostCheck)
        ),
        ("token", "login and a bearer token alone, over TLS", .token, .tls(.anyAuthorityOfTheDevice)),
        ("tokens-pinned", "login and bearer tokens over TLS, certificate pinned", .tokens, .tls(.pinned)),
    ]

    /// At a reference server such an app is the row `token`.
    private static let openRoute = RowProfile(
        name: "open-route+gateway",
        summary: "login and bearer tokens of the backend's own, over TLS; on open routes of our gateway",
        scheme: .openRoute, transport: .tls(.anyAuthorityOfTheDevice), server: .gateway)

    private static let ours: [RowProfile] = [
        RowProfile(
            name: "message-signatures-password",
            summary: "signed requests, the password itself inside pinned TLS, bearer tokens",
            scheme: .messageSignaturesWithPassword, transport: .tls(.pinned), server: .gateway),
        RowProfile(
            name: "message-signatures-decide-no-tls", summary: "as `countersign-decide`, with TLS taken away",
            scheme: .countersign, transport: .plain, server: .nginxAsking),
        RowProfile(
            name: "countersign",
            summary: "message signatures, OPAQUE, a session bound to the device, pinned TLS",
            scheme: .countersign, transport: .tls(.pinned), server: .gateway),
        RowProfile(
            name: "countersign-no-tls", summary: "the same with TLS taken away", scheme: .countersign,
            transport: .plain, server: .gateway),
        RowProfile(
            name: "countersign-decide",
            summary: "as `countersign`; nginx asks our gateway about each request",
            scheme: .countersign, transport: .tls(.pinned), server: .nginxAsking),
    ]
}
