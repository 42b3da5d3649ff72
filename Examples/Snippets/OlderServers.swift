// Uses the client with an unchanged server.
import Countersign
import Foundation

func legacyClient() throws -> LegacyClient {
    let client = try LegacyClient(
        scheme: .formMD5(
            appID: "Zk3vQp81LmTn0aWd", privateKey: "k2X9", platform: "ios", version: "3.1", zone: 28_800),
        baseURL: "https://api.example.com", login: LegacyLogin(.md5Salt("gdyb21LQTcIANtvYMT7QVQ==")),
        vault: .platform,
        trust: [
            .host(
                "api.example.com", pins: ["sha256/MDEyMzQ1Njc4OWFiY2RlZjAxMjM0NTY3ODlhYmNkZWY="],
                backups: ["sha256/ZmVkY2JhOTg3NjU0MzIxMGZlZGNiYTk4NzY1NDMyMTA="])
        ])
    return client
}

func use(_ client: LegacyClient) async throws {
    try await client.logIn("anna", "correct horse battery staple")
    let (data, response) = try await client.data(for: APIRequest("/orders"))
    print(data.count, response.status)
    let names: [String] = try await client.value(for: APIRequest("/names"))
    let signed = try await client.signed(APIRequest("/names"))
    print(names.count, signed.url)
    try await client.logOut()
}

/// Code for both kinds of clients.
func orders(_ client: some APISending) async throws -> [String] {
    try await client.value(for: APIRequest("/orders"))
}

/// A type that wraps a client sends requests as the client does.
struct Backend: APISending {
    let client: LegacyClient

    var sender: APISender { client.sender }
}

/// Cookies, repetitions, a log and a log-out that the server is told of.
func comfortableLegacyOptions() -> LegacyOptions {
    var options = LegacyOptions()
    options.cookies = .keptUntilSignOut
    options.retry = .standard
    options.log = .handler(from: .info) { entry in
        print(entry)
    }
    options.logoutPath = "/user/logout"
    return options
}

func signOut(_ client: LegacyClient) async throws {
    switch try await client.logOut() {
    case LegacyClient.LogOutResult.serverKnows: print("signed out everywhere")
    case .serverWasNotTold: print("signed out here")
    }
    print(client.cookies.cookies.isEmpty)
}

/// Interceptors, streams and events work as with `CountersignClient`.
func stream(_ client: LegacyClient, _ film: String) async throws {
    let request = APIRequest(.post, "/films")
    let (_, response) = try await client.upload(request, from: .file(path: film)) { print($0.sent) }
    let answer = try await client.download(for: APIRequest("/films/1"))
    for try await piece in answer.body { print(piece.count) }
    try await client.download(for: APIRequest("/films/1"), to: film) { progress in print(progress.received) }
    let (data, _) = try await client.data(for: APIRequest("/films")) { progress in print(progress.received) }
    print(response.status, answer.response.status, data.count)
}

func listen(_ client: LegacyClient) async throws {
    for await event in client.events { print(event) }
    for try await (data, _) in client.poll(APIRequest("/news"), every: .seconds(60)) { print(data.count) }
}

/// Releases the stored session only while the user is present.
func gated(_ presence: UserPresence) -> LegacyOptions {
    var options = LegacyOptions()
    options.gate = LegacyOptions.Gate.atLaunch(presence)
    options.whenLocked = .wait
    options.interceptors = [Languages()]
    return options
}

func pass(_ client: LegacyClient) async throws {
    if case .locked = await client.resume() { try await client.unlock("Open your orders") }
}

/// At launch: continues the session of an earlier version of the app.
func takeOver(_ client: LegacyClient, _ old: LegacySessionRemains?) async throws {
    if case .signedOut = await client.resume(), let old {
        try await client.adopt(old)
        print(old.description)
    }
    for await state in client.states { print(state, client.state == state) }
}

/// The values that the earlier version stored.
func remains(token: String) throws -> LegacySessionRemains {
    try LegacySessionRemains(account: "anna", userID: 7, token: token, loginToken: nil)
}

/// For a server that hashes the key after the parameters, or one that hashes it as one of them.
func formScheme(keyIsAppended: Bool) throws -> LegacyScheme {
    let key = keyIsAppended ? LegacyScheme.FormMD5Key.appended : LegacyScheme.FormMD5Key.pair
    return try .formMD5(
        appID: "Zk3vQp81LmTn0aWd", privateKey: "k2X9", platform: "ios", version: "3.1", key: key)
}

/// The signing schemes of other servers.
func schemes() throws -> [LegacyScheme] {
    [
        try .authV1(key: "278d425bdf160c739803", secret: "7ad3773142a6692b25b8"),
        try .authV2(clientID: "1001", secret: "7ad3773142a6692b25b8"),
        try .authV4(clientID: "1001", secret: "7ad3773142a6692b25b8"),
        .unsigned,
    ]
}

/// Their login methods, from the weakest to the strongest.
let logins = [
    LegacyLogin(.plainGet), LegacyLogin(.plainPost), LegacyLogin(.base64, path: "/signin"),
    LegacyLogin(.md5, signing: LegacyLogin.Signing.none), LegacyLogin(LegacyLogin.Rung.hmacMD5(key: "k")),
    LegacyLogin(.hmacMD5Time(key: "k", zone: 28_800), signing: .likeRequests),
]

/// All other options.
func legacyOptions() -> LegacyOptions {
    var options = LegacyOptions()
    options.tokenPlace = .asTheSchemeHasIt
    options.renewalPath = "/login/token.php"
    options.unauthorized = .isAnAnswer
    options.remembers = .session
    options.bearerSecrets = .onlyToThePinnedCertificate
    options.encryption = .required
    options.transport = .standard(TransportOptions())
    options.clock = .system
    options.json = .standard
    options.largestAnswer = 1 << 20
    options.app = "notes"
    options.userAgent = "notes/3.1"
    return options
}

/// The weaker choices; each name states its cost.
func weakerOptions() -> LegacyOptions {
    var options = LegacyOptions()
    options.tokenPlace = LegacyOptions.TokenPlace.formParameters
    options.tokenPlace = .authorizationField
    options.unauthorized = LegacyOptions.Unauthorized.tokenRanOut
    options.gate = .none
    options.remembers = LegacyOptions.Remembering.sessionAndWhatSignsInLikeThePassword
    options.remembers = .nothing
    options.bearerSecrets = LegacyOptions.BearerSecrets.inTheClearToWhoeverListens
    options.bearerSecrets = .toAnyCertificateThatVerifies
    return options
}
