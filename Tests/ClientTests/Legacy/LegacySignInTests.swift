import ClientFakes
import CountersignSchemes
import CountersignSeal
import CountersignVault
import CountersignWire
import Testing

@testable import CountersignClient

@Suite struct LegacySignInTests {
    /// The value that each rung sends for one password. Source: Vectors/login-ladder, "ladder 1".
    static let sent: [Rung: String] = [
        .plainGet: "p@ss w0rd", .plainPost: "p@ss w0rd", .base64: "cEBzcyB3MHJk",
        .md5: "23dbdf3e325c805dd816b0700c11f831", .md5Salt: "737ec60a45675fbde0f78a6e7e8a82b0",
        .hmacMD5: "f6a27116a1ce0003d97a3b19e3d78e8f", .hmacMD5Time: "df7e2076987395b34819fccb76331df4",
    ]
    static let settings = LadderSettings(
        salt: Secret(copying: Array("xvQr7X3mFkj2jPs2mizEdgZL".utf8).span),
        key: Secret(copying: Array("qianqian".utf8).span), timezoneOffset: 28_800)

    @Test("each rung sends what the field's servers expect, through its own door", arguments: Rung.allCases)
    func rungs(_ rung: Rung) async throws {
        let value = try #require(LegacySignInTests.sent[rung])
        let world = try LegacyWorld(
            OldServer(opensWith: value), rung: rung, settings: LegacySignInTests.settings)
        try await world.logIn("p@ss w0rd")
        let seen = try #require(world.server.seen(rung.endpoint.path).first)
        #expect(seen.method == rung.endpoint.method)
        #expect(seen.form["password"] == value)
        #expect(world.said.all == [.signedOut(nil), .active(account: "anna", userID: 7)])
        #expect(try await world.post("{\"n\":1}") == #"{"done":"{\"n\":1}"}"#)
    }

    @Test("a wrong password is told apart, and leaves who was signed in")
    func wrong() async throws {
        let world = try LegacyWorld()
        try await world.logIn()
        #expect(await problem { try await world.logIn("another") } == "wrongCredentials")
        #expect(try await world.post() == #"{"done":"{}"}"#)
    }

    @Test(
        "a password goes nowhere that was not named for it",
        arguments: [
            (
                Request.Transport.tls, Installation.Channel.open,
                Installation.BearerSecrets.onlyToThePinnedCertificate,
                false
            ),
            (.tls, .pinned, .onlyToThePinnedCertificate, true),
            (.tls, .open, .toAnyCertificateThatVerifies, true),
            (.plain, .pinned, .onlyToThePinnedCertificate, false),
            (.plain, .open, .toAnyCertificateThatVerifies, false),
            (.plain, .open, .inTheClearToWhoeverListens, true),
        ])
    func bearerSecrets(
        _ transport: Request.Transport, _ channel: Installation.Channel,
        _ rule: Installation.BearerSecrets,
        _ isSent: Bool
    ) async throws {
        let world = try LegacyWorld { server in
            server.transport = transport
            server.channel = channel
            server.bearerSecrets = rule
        }
        let isIn = (try? await world.logIn()) != nil
        #expect(isIn == isSent)
        #expect(world.server.seen("/login/login.php").count == (isSent ? 1 : 0))
        // Nor does an older token.
        let other = LegacySession(
            account: "anna", userID: 7, token: Secret(copying: Array("t1".utf8).span), loginToken: nil,
            expires: nil)
        try await world.account.logOut()
        try await world.account.adopt(other)
        _ = try? await world.post()
        #expect(world.server.seen("/api").count == (isSent ? 1 : 0))
    }

    @Test("the password is not kept, and where the app asks for it, what the rung needs is")
    func remembered() async throws {
        for (remembering, isKept) in [(LegacyAccount.Remembering.nothing, false), (.whatSignsIn, true)] {
            let value = try #require(LegacySignInTests.sent[.md5])
            let world = try LegacyWorld(OldServer(opensWith: value), rung: .md5, remembering: remembering)
            try await world.logIn("p@ss w0rd")
            let kept = String(decoding: world.items.contents, as: UTF8.self)
            #expect(kept.contains("anna"), "it is the vault that is looked into")
            #expect(!kept.contains("p@ss w0rd"))
            #expect(kept.contains(value) == isKept)
        }
    }

    @Test("what is remembered signs in at a launch and after -101, and never after -100")
    func silent() async throws {
        let world = try LegacyWorld(OldServer(tokens: .tokenOnly), remembering: .whatSignsIn)
        try await world.logIn()
        world.server.expire()
        #expect(try await world.post() == #"{"done":"{}"}"#)
        #expect(world.server.seen("/login/login.php").count == 2)

        world.server.replace()
        #expect(await problem { try await world.post() } != nil)
        #expect(await problem { try await world.post() } == "notSignedIn")
        #expect(world.server.seen("/login/login.php").count == 2, "the other device's session stays")
        guard case .signedOut(let end?)? = world.said.last, end.isTold else {
            return #expect(Bool(false), "\(world.said.all)")
        }

        #expect(try await world.account.resume() == .active(account: "anna", userID: 7))
        #expect(world.server.seen("/login/login.php").count == 3)
        try await world.account.logOut()
        #expect(try await world.account.resume() == .signedOut(.byUser))
        #expect(world.items.contents.isEmpty)
    }

    @Test("what is remembered and opens nothing any more is forgotten")
    func changedPassword() async throws {
        let world = try LegacyWorld(OldServer(tokens: .tokenOnly), remembering: .whatSignsIn)
        let value = RememberedSignIn(
            account: "anna", rung: .plainPost, value: Secret(copying: Array("old".utf8).span))
        var kept = LegacyPersistedState()
        kept.remembered = value
        try await world.account.write(kept, expecting: .absent)
        #expect(await problem { try await world.account.resume() } == "wrongCredentials")
        #expect(world.said.last == .signedOut(.credentialsRefused))
        #expect(world.items.contents.isEmpty)
    }

    @Test("a session of the app's version before is gone on with, and never in place of a newer one")
    func adopted() async throws {
        let world = try LegacyWorld()
        try await world.logIn()
        let old = LegacySession(account: "berta", userID: 8, token: nil, loginToken: nil, expires: nil)
        try await world.account.adopt(old)
        #expect(try await world.kept().session?.account == "anna")
        try await world.account.logOut()
        try await world.account.adopt(old)
        #expect(world.said.last == .active(account: "berta", userID: 8))
    }

    @Test("a launch finds who was signed in; a locked vault is not an empty one")
    func launch() async throws {
        let world = try LegacyWorld()
        #expect(try await world.account.resume() == .signedOut(nil))
        try await world.logIn()
        #expect(try await world.another().resume() == .active(account: "anna", userID: 7))
        world.items.lock(true)
        let later = try world.another()
        #expect(await problem { try await later.resume() } == "vaultLocked")
        world.items.lock(false)
        #expect(try await later.resume() == .active(account: "anna", userID: 7))
    }

    @Test("a token that ran out is renewed at the launch, and being offline ends nothing")
    func launchLater() async throws {
        let world = try LegacyWorld()
        try await world.logIn()
        world.advance(7200)
        world.server.change { $0.isOffline = true }
        #expect(try await world.another().resume() == .active(account: "anna", userID: 7))
        world.server.change { $0.isOffline = false }
        #expect(try await world.another().resume() == .active(account: "anna", userID: 7))
        #expect(world.server.seen("/login/token.php").count == 1)
        #expect(try await world.another().resume() == .active(account: "anna", userID: 7))
        #expect(world.server.seen("/login/token.php").count == 1, "it is good for two hours more")
    }
}
