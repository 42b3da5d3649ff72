import ClientFakes
import Countersign
import CountersignTestKit
import Foundation
import Testing

@Suite struct LegacyClientTests {
    static let pin = "sha256/\(Data(repeating: 1, count: 32).base64EncodedString())"
    static let backup = "sha256/\(Data(repeating: 2, count: 32).base64EncodedString())"
    static let login = #"{"userId":7,"token":"t-one","loginToken":"l-one","expiresIn":7200}"#
    static let form = try? LegacyScheme.formMD5(
        appID: "app", privateKey: "key", platform: "ios", version: "1")

    private func client(
        _ carrier: MockTransport, _ folder: TestFolder, scheme: LegacyScheme = .unsigned,
        _ adjust: (inout LegacyOptions) -> Void = { _ in }
    ) throws -> LegacyClient {
        var options = LegacyOptions()
        options.transport = .custom(carrier)
        adjust(&options)
        return try LegacyClient(
            scheme: scheme, baseURL: "https://old.example.com/v3", login: LegacyLogin(.md5),
            vault: .folder(folder.path),
            trust: [.host("old.example.com", pins: [Self.pin], backups: [Self.backup])], options: options)
    }

    @Test("what is shown goes from the login page to the home page and back, to any number of listeners")
    func states() async throws {
        let folder = try TestFolder()
        defer { withExtendedLifetime(folder) {} }
        let carrier = MockTransport([.answer(MockResponse(text: Self.login))])
        let client = try client(carrier, folder)
        #expect(client.state == .unavailable)
        var (one, two) = (client.states.makeAsyncIterator(), client.states.makeAsyncIterator())
        #expect(await one.next() == .unavailable)
        #expect(await two.next() == .unavailable)
        #expect(await client.resume() == .signedOut(.nobody))
        #expect(await one.next() == .signedOut(.nobody))
        try await client.logIn("anna", "pass word")
        #expect(await one.next() == .active(CountersignAccount(name: "anna", session: "7")))
        #expect(
            await two.next() == .active(CountersignAccount(name: "anna", session: "7")), "the last one counts"
        )
        try await client.logOut()
        #expect(await one.next() == .signedOut(.ended(SessionEnd(.signedOut))))
        #expect(carrier.stepsLeft == 0)
    }

    @Test("a request lies below the base URL, and bears the token where the scheme has it")
    func requests() async throws {
        let folder = try TestFolder()
        defer { withExtendedLifetime(folder) {} }
        let carrier = MockTransport { _ in MockResponse(text: Self.login) }
        let bearer = try client(carrier, folder)
        try await bearer.logIn("anna", "pass word")
        #expect(
            carrier.seen.last?.target == "/login/login.php", "where the server has it, whatever the base path"
        )
        _ = try await bearer.data(for: APIRequest("/orders?a=1"))
        #expect(carrier.seen.last?.target == "/v3/orders?a=1")
        #expect(
            carrier.seen.last?.fields.contains(HeaderField("Authorization", value: "Bearer t-one")) == true)

        let signed = try client(carrier, folder, scheme: #require(Self.form))
        let request = try await signed.signed(APIRequest("/orders?a=1"))
        #expect(
            request.url.hasPrefix(
                "https://old.example.com/v3/orders?a=1&userId=7&token=t-one&app_id=app&plat=ios"))
        #expect(!request.fields.contains { $0.name == "Authorization" })
        await #expect(throws: CountersignError.self) {
            try await signed.data(for: APIRequest("https://other.example.com/"))
        }
    }

    @Test("bodies from files and streams are signed like those in memory; what is gone once read is refused")
    func bodies() async throws {
        let folder = try TestFolder()
        defer { withExtendedLifetime(folder) {} }
        let carrier = MockTransport { _ in MockResponse(text: Self.login) }
        let client = try client(
            carrier, folder, scheme: .authV1(key: "k", secret: "s"))
        try await client.logIn("anna", "pass word")
        let path = "\(folder.path)/body"
        try Data("{}".utf8).write(to: URL(fileURLWithPath: path))
        // Source: RFC 1321's algorithm over `{}`, by openssl.
        let digest = "body_md5=99914b932bd37a50b983c5e7c90ae93b"
        let bodies: [APIRequest.Body] = [
            .bytes(Array("{}".utf8)), .file(path: path), .replayable(ReplayableBody(.bytes(2)) { Pieces() }),
        ]
        for body in bodies {
            _ = try await client.data(for: APIRequest(.post, "/a", body: body))
            #expect(carrier.seen.last?.target.contains(digest) == true)
            #expect(carrier.seen.last?.body == Array("{}".utf8))
        }
        // auth-v1 signs the MD5 of a body, which is unknown for a stream that can be read only once.
        let count = carrier.seen.count
        let once = APIRequest(
            .post, "/a",
            body: .once(OnceBody(.bytes(2), pieces: Pieces()), sha256: [UInt8](repeating: 0, count: 32)))
        await #expect(throws: CountersignError.self) { try await client.data(for: once) }
        #expect(carrier.seen.count == count)
    }

    @Test(
        "what outlives the process is what the app asked for",
        arguments: [
            (LegacyOptions.Remembering.nothing, false), (.session, true),
        ])
    func remembers(_ remembering: LegacyOptions.Remembering, _ isKept: Bool) async throws {
        let folder = try TestFolder()
        defer { withExtendedLifetime(folder) {} }
        let carrier = MockTransport { _ in MockResponse(text: Self.login) }
        let first = try client(carrier, folder) { $0.remembers = remembering }
        try await first.logIn("anna", "pass word")
        _ = try await first.data(for: APIRequest("/a"))
        let state = await (try client(carrier, folder)).resume()
        #expect(
            state == (isKept ? .active(CountersignAccount(name: "anna", session: "7")) : .signedOut(.nobody)))
    }

    @Test("what cannot be done is said when the client is made")
    func misuse() throws {
        let folder = try TestFolder()
        defer { withExtendedLifetime(folder) {} }
        let trust: Trust = [try .host("old.example.com", pins: [Self.pin], backups: [Self.backup])]
        func make(
            _ scheme: LegacyScheme, _ options: LegacyOptions = LegacyOptions(),
            url: String = "https://old.example.com"
        ) throws {
            _ = try LegacyClient(
                scheme: scheme, baseURL: url, login: LegacyLogin(.md5), vault: .folder(folder.path),
                trust: trust,
                options: options)
        }
        var parameters = LegacyOptions()
        parameters.tokenPlace = .formParameters
        let v4 = try LegacyScheme.authV4(clientID: "k", secret: "s")
        #expect(throws: CountersignError.self, "it signs no forms") { try make(v4) }
        #expect(throws: CountersignError.self, "nothing signs them") { try make(.unsigned, parameters) }
        #expect(throws: CountersignError.self) { try make(.unsigned, url: "http://old.example.com") }
        #expect(throws: CountersignError.self) {
            try LegacyScheme.authV1(key: "a key id with a space", secret: "s")
        }
        #expect(throws: CountersignError.self) { try LegacyScheme.authV2(clientID: "k", secret: "") }
        #expect(throws: CountersignError.self) {
            try LegacySessionRemains(account: "a", userID: 0, token: "t")
        }
        #expect(throws: CountersignError.self) {
            try LegacySessionRemains(account: "a", userID: 1, token: "t\n")
        }
        #expect(throws: Never.self) { try make(.unsigned) }
    }

    @Test("secrets are not printed")
    func printing() throws {
        let remains = try LegacySessionRemains(
            account: "anna", userID: 7, token: "t-secret", loginToken: "l-secret")
        let scheme = try LegacyScheme.formMD5(
            appID: "app", privateKey: "k-secret", platform: "ios", version: "1")
        let login = LegacyLogin(.md5Salt("s-secret"))
        for value in [remains, scheme, login, LegacyLogin(.hmacMD5(key: "s-secret"))] as [Any] {
            var dumped = "\(value)"
            dump(value, to: &dumped)
            #expect(!dumped.contains("secret\"") && !dumped.contains("-secret"), "\(dumped)")
        }
    }

    @Test("a plain 401 is an answer, and a token that ran out where the app says so")
    func unauthorized() async throws {
        for (meaning, renewals) in [(LegacyOptions.Unauthorized.isAnAnswer, 0), (.tokenRanOut, 1)] {
            let folder = try TestFolder()
            defer { withExtendedLifetime(folder) {} }
            let carrier = MockTransport { seen in
                if seen.target == "/login/login.php" { return MockResponse(text: Self.login) }
                if seen.target == "/login/token.php" { return MockResponse(text: #"{"token":"t-two"}"#) }
                let isNew = seen.fields.contains(HeaderField("Authorization", value: "Bearer t-two"))
                return MockResponse(isNew ? 200 : 401)
            }
            let client = try client(carrier, folder) { $0.unauthorized = meaning }
            try await client.logIn("anna", "pass word")
            let (_, response) = try await client.data(for: APIRequest("/a"))
            #expect(response.status == (renewals == 0 ? 401 : 200))
            #expect(carrier.seen.filter { $0.target == "/login/token.php" }.count == renewals)
        }
    }

    private struct Pieces: AsyncSequence, Sendable {
        func makeAsyncIterator() -> Iterator { Iterator() }

        struct Iterator: AsyncIteratorProtocol {
            private var left: [[UInt8]] = [Array("{".utf8), Array("}".utf8)]
            mutating func next() async throws -> [UInt8]? { left.isEmpty ? nil : left.removeFirst() }
        }
    }
}
