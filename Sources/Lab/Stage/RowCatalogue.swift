/// All rows, in the order of the table.
package enum RowCatalogue {
    package static let all: [RowProfile] = legacy + [openRoute] + ours

    /// Each legacy scheme twice: as the field serves it, and as our gateway does. Behind the gateway the apps are the same, and so is whom
    /// they trust; what had no TLS has it now.
    private static let legacy: [RowProfile] = schemes.flatMap { name, summary, scheme, transport in
        [
            RowProfile(
                name: RowName(name), summary: "\(summary); a server as teams have it", scheme: scheme,
                transport: transport, server: .reference),
            RowProfile(
                name: RowName("\(name)+gateway"), summary: "\(summary); served by our gateway", scheme: scheme,
                transport: transport == .plain ? .tls(.anyAuthorityOfTheDevice) : transport, server: .gateway),
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
            "tokens-pinned-no-host-check", "login and bearer tokens over TLS, certificate pinned, name unchecked",
            .tokens, .tls(.pinnedWithoutHostCheck)
        ),
        ("token", "login and a bearer token alone, over TLS", .token, .tls(.anyAuthorityOfTheDevice)),
        ("tokens-pinned", "login and bearer tokens over TLS, certificate pinned", .tokens, .tls(.pinned)),
    ]

    /// At a server of its own such an app is the row `token`.
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
            name: "countersign", summary: "message signatures, OPAQUE, a session bound to the device, pinned TLS",
            scheme: .countersign, transport: .tls(.pinned), server: .gateway),
        RowProfile(
            name: "countersign-no-tls", summary: "the same with TLS taken away", scheme: .countersign,
            transport: .plain, server: .gateway),
        RowProfile(
            name: "countersign-decide", summary: "as `countersign`; nginx asks our gateway about each request",
            scheme: .countersign, transport: .tls(.pinned), server: .nginxAsking),
    ]
}
