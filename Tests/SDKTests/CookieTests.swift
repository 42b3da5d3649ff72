import CountersignMemory
import CountersignClient
import CountersignTransport
import CountersignTrust
import CountersignWire
import Testing

@testable import Countersign

/// A client with cookies enabled returns the server's cookies, signed, and removes them with the account;
/// other clients store none.
@Suite struct CookieTests {
    private static let setting = Cookie.Setting(
        host: "api.example.com", path: "/shop/cart", isEncrypted: true, time: 1_800_000_000)

    @Test(
        arguments: [
            ("a=1", "/shop", nil, false), ("a=1; Path=/", "/", nil, false),
            ("a=\"x y\"; path=/q;secure", "/q", nil, true),
            ("a=1; Max-Age=60", "/shop", 1_800_000_060, false), ("a=1; max-age=-5", "/shop", 0, false),
            ("a=1; Expires=Wed, 31 Jan 2029 12:00:01 GMT", "/shop", 1_864_555_201, false),
            ("a=1; Expires=Wednesday, 31-Jan-29 12:00:01 GMT; Max-Age=9", "/shop", 1_800_000_009, false),
            ("a=1; Expires=Wed Jan 31 12:00:01 2029", "/shop", 1_864_555_201, false),
            ("a=1; Domain=example.com", "/shop", nil, false),
            ("a=1; Domain=.API.example.com", "/shop", nil, false),
            ("a=1; Path=x; Expires=soon", "/shop", nil, false),
            ("__Host-a=1; Secure; Path=/", "/", nil, true),
            ("a=1; Max-Age=99999999999999999999", "/shop", .max, false),
            // A combining character joins the delimiter before it in a Swift `Character`.
            ("a=1;\u{6EC}x; Secure", "/shop", nil, true),
            ("a=\u{6EC}; Path=/\u{301}", "/\u{301}", nil, false),
        ] as [(String, String, Int64?, Bool)])
    func whatAFieldSets(_ field: String, _ path: String, _ expires: Int64?, _ isSecure: Bool) throws {
        let cookie = try #require(Cookie(field, setting: CookieTests.setting))
        #expect(cookie.path == path && cookie.expires == expires && cookie.isSecure == isSecure)
    }

    @Test(arguments: [
        "", ";", "=1", "a", "a; Path=/", "a=1; Domain=example.org", "a=1; Domain=evil-example.com",
        "a=1; Domain=pi.example.com", "__Secure-a=1", "__Host-a=1; Secure",
        "__Host-a=1; Secure; Path=/; Domain=api.example.com", "a=1\u{7F}", "a=\u{0}",
        "a=" + String(repeating: "x", count: 4096),
    ])
    func whatSetsNothing(_ field: String) { #expect(Cookie(field, setting: CookieTests.setting) == nil) }

    @Test func aCombiningCharacterHidesNoDelimiter() throws {
        let cookie = try #require(Cookie("a=1;\u{6EC} Secure=\u{301}2", setting: CookieTests.setting))
        #expect(cookie.name == "a" && cookie.value == "1" && !cookie.isSecure)
        #expect(cookie.isFor(path: "/shop/\u{301}", isEncrypted: true, at: 0))
        #expect(!cookie.isFor(path: "/shop\u{301}", isEncrypted: true, at: 0))
    }

    @Test func anAddressIsNoDomain() {
        let address = Cookie.Setting(host: "192.0.2.1", path: "/", isEncrypted: true, time: 0)
        #expect(
            Cookie("a=1; Domain=2.1", setting: address) == nil
                && Cookie("a=1; Domain=192.0.2.1", setting: address) != nil)
    }

    /// Otherwise a man in the middle could set it.
    @Test func aSecureCookieIsNotSetWithoutTLS() {
        let plain = Cookie.Setting(host: "api.example.com", path: "/", isEncrypted: false, time: 0)
        #expect(Cookie("a=1; Secure", setting: plain) == nil && Cookie("a=1", setting: plain) != nil)
    }

    @Test func dates() {
        #expect(CookieDate.seconds("Thu, 01 Jan 1970 00:00:00 GMT") == 0)
        #expect(CookieDate.seconds("Tue, 29 Feb 2000 23:59:59 GMT") == 951_868_799)
        #expect(CookieDate.seconds("1 1:2:3 mar 69") == 3_129_325_323)
        for wrong in [
            "", "Tue, 29 Feb 2100 00:00:00", "1 Jan 2000 24:00:00", "32 Jan 2000 1:1:1", "Jan 2000 1:1:1",
            "1:1:1",
        ] {
            #expect(CookieDate.seconds(wrong) == nil, "\(wrong)")
        }
    }

    @Test func whichRequestsTheyGoWith() throws {
        let store = CookieStore()
        let fields = [
            "deep=1; Path=/shop/cart", "wide=2; Path=/", "tls=3; Path=/; Secure",
            "brief=4; Path=/; Max-Age=10",
        ]
        store.take(
            fields.map { HeaderField("Set-Cookie", value: $0) }, setting: CookieTests.setting,
            unlessRemovedSince: 0)
        let time = CookieTests.setting.time
        #expect(
            store.field(path: "/shop/cart/7", isEncrypted: true, at: time) == "deep=1; wide=2; tls=3; brief=4"
        )
        #expect(store.field(path: "/shop/cartoon", isEncrypted: false, at: time) == "wide=2; brief=4")
        #expect(store.field(path: "/x", isEncrypted: true, at: time + 10) == "wide=2; tls=3")
        store.take(
            [HeaderField("set-cookie", value: "wide=; Path=/; Max-Age=0")], setting: CookieTests.setting,
            unlessRemovedSince: 0)
        #expect(store.field(path: "/x", isEncrypted: false, at: time + 10) == nil)
        // The number of stored cookies is bounded.
        let many = (0..<500).map { HeaderField("Set-Cookie", value: "n\($0)=1; Path=/") }
        store.take(many, setting: CookieTests.setting, unlessRemovedSince: 0)
        let names = store.cookies.map(\.name)
        #expect(names.count == 50 && names.last == "n499")
        #expect("\(store.cookies)".contains("=1") == false)
    }

    @Test func aClientKeepsThemForItsAccount() async throws {
        let world = try await World { $0.cookies = .keptUntilSignOut }
        let client = try await world.signedIn()
        let set = [
            HeaderField("Set-Cookie", value: "sid=7; Path=/"), HeaderField("Set-Cookie", value: "lang=de"),
        ]
        await world.backend.plan(.answer(200, set), at: "/shop/start")
        _ = try await client.data(for: APIRequest("/shop/start"))
        #expect(client.cookies.cookies.map(\.name) == ["sid", "lang"])
        _ = try await client.data(for: APIRequest("/shop/cart?x=1"))
        _ = try await client.data(for: APIRequest("/other"))
        let own = HeaderField("Cookie", value: "mine=1")
        _ = try await client.data(for: APIRequest(.get, "/shop/own", fields: [own]))
        func cookies(_ path: String) async -> [String] {
            await world.backend.copies(of: path).flatMap { $0.fields.filter { $0.name == "Cookie" } }
                .map { String(decoding: $0.value, as: UTF8.self) }
        }
        #expect(await cookies("/shop/start") == [])
        #expect(await cookies("/shop/cart") == ["lang=de; sid=7"])
        #expect(await cookies("/other") == ["sid=7"])
        #expect(await cookies("/shop/own") == ["mine=1"])
        // Covered by the signature, like every field.
        let input = await world.backend.copies(of: "/other").first?.fields.first {
            $0.name == "Signature-Input"
        }
        let covered = String(decoding: input?.value ?? [], as: UTF8.self)
        #expect(covered.contains("\"cookie\""))
        try await client.logOut()
        #expect(client.cookies.cookies.isEmpty)
    }

    /// Delivers the response of `/slow` only after an event of the test.
    private struct Slow: RequestTransport {
        let carrier: any RequestTransport
        let meanwhile: @Sendable () async throws -> Void

        func send(
            _ request: OutgoingRequest, progress: @escaping @Sendable (TransferProgress) -> Void
        ) async throws(TransportError) -> IncomingResponse {
            let answer = try await carrier.send(request, progress: progress)
            if String(decoding: request.target, as: UTF8.self) == "/slow" {
                do {
                    try await meanwhile()
                } catch {
                    throw TransportError(.machine("\(error)"), fate: .brokenOff)
                }
            }
            return answer
        }

        func replaceTrust(by trust: Trust) {}
    }

    @Test func anAnswerToTheFormerAccountSetsNone() async throws {
        let later = Locked<CountersignClient?>(nil)
        let world = try await World {
            $0.cookies = .keptUntilSignOut
            guard case .custom(let carrier) = $0.transport else { return }
            $0.transport = .custom(
                Slow(carrier: carrier) {
                    let client = try #require(later.with { $0 })
                    try await client.logOut()
                    try await client.logIn("bob", "correct horse")
                })
        }
        let client = try await world.signedIn()
        try await client.signUp("bob", "correct horse")
        later.with { $0 = client }
        await world.backend.plan(
            .answer(200, [HeaderField("Set-Cookie", value: "sid=alices; Path=/")]), at: "/slow")
        #expect(try await client.data(for: APIRequest("/slow")).1.status == 200)
        #expect(try await client.kept().login?.account.description == "bob" && client.cookies.cookies.isEmpty)
        _ = try await client.data(for: APIRequest("/next"))
        #expect(
            await world.backend.copies(of: "/next").allSatisfy { !$0.fields.contains { $0.name == "Cookie" } }
        )
    }

    @Test func byDefaultThereAreNone() async throws {
        let world = try await World()
        let client = try await world.signedIn()
        await world.backend.plan(
            .answer(200, [HeaderField("Set-Cookie", value: "sid=7; Path=/")]), at: "/start")
        _ = try await client.data(for: APIRequest("/start"))
        _ = try await client.data(for: APIRequest("/next"))
        #expect(client.cookies.cookies.isEmpty)
        #expect(
            await world.backend.copies(of: "/next").allSatisfy { !$0.fields.contains { $0.name == "Cookie" } }
        )
    }
}
