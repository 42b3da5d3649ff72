import CountersignGate
import CountersignWire
import Testing

/// What a release opens by itself, where policy `anonymous` names routes.
@Suite struct RouteRuleTests {
    private func scene(_ routes: [String]) throws -> SessionScene {
        try SessionScene { $0.anonymous = .under(routes.map { Array($0.utf8) }) }
    }

    @Test(
        "routes without a session",
        arguments: [
            ("/public", nil), ("/public/", nil), ("/public/a/b", nil), ("/public?x=/../admin", nil),
            ("/v1/news", nil), ("/public/%C3%A9", nil), ("/public/a%20b/c.d", nil), ("/public/@:!$&'()*+,=", nil),
            ("/public/%C3%A9;v=1", .malformed), ("/public/a;b", .malformed), ("/public;a", .malformed),
            ("/public/a./b", .malformed), ("/public/a%20/b", .malformed), ("/public/..%20/admin", .malformed),
            ("/public/...", .malformed), ("/public/%3fa", .malformed), ("/public/%23", .malformed),
            ("/public/#/admin", .malformed), ("/public/%7f", .malformed), ("/public/%C3", .malformed),
            ("/public/%80", .malformed), ("/public/%ED%A0%80", .malformed), ("/public/%FF", .malformed),
            ("/public/%C3%A9/%C3/%A9", .malformed), ("/public/%u002e", .malformed), ("/public/%0d%0a", .malformed),
            ("/publicity", .sessionEnded), ("/", .sessionEnded), ("/v1", .sessionEnded), ("/Public", .sessionEnded),
            ("/public/../admin", .malformed), ("/public/./a", .malformed), ("/public//a", .malformed),
            ("//public", .malformed), ("/public/..", .malformed), ("/public/..;x/admin", .malformed),
            ("/public/;x", .malformed), ("/public/%2e%2e/admin", .malformed), ("/public/..%2fadmin", .malformed),
            ("/public%2Fa", .malformed), ("/publ%69c", .malformed), ("/public/..%5cadmin", .malformed),
            ("/public/..\\admin", .malformed), ("/public/%zz", .malformed), ("/public/%", .malformed),
            ("/public/%00", .malformed), ("/public/%252e%252e/admin", .malformed), ("/public/100%25", .malformed),
            ("/public/..%3bx/admin", .malformed), ("/public/%3B", .malformed), ("/public/%c0%ae%c0%ae/x", .malformed),
            ("/public/%C1%9C", .malformed), ("/public/%E0%80%AF", .malformed), ("/public/%f0%80%80%af", .malformed),
            ("/public/%F8%80%80%80%AF", .malformed), ("/public/%E0%A4%B9", nil), ("/public/%F0%9F%98%80", nil),
        ] as [(String, Refusal.Code?)])
    func rules(_ row: (target: String, code: Refusal.Code?)) async throws {
        let scene = try scene(["/public", "/v1/news"])
        #expect(try await scene.refusal(of: scene.releaseRequest(row.target))?.code == row.code)
        // A session opens them all; what has two readings is refused to everybody.
        let ofSession = try await scene.refusal(of: scene.request(target: row.target))?.code
        #expect(ofSession == (row.code == .malformed ? .malformed : nil))
    }

    @Test("where routes do not differ, paths are as they are", arguments: [[], nil] as [[String]?])
    func noRules(_ routes: [String]?) async throws {
        for target in ["/a//b", "/a/../b", "/a;b/%2e", "/%zz"] {
            let scene = try SessionScene { $0.anonymous = routes == nil ? .all : .under([]) }
            #expect(try await scene.refusal(of: scene.request(target: target)) == nil)
        }
    }

    @Test("the authority's own routes say themselves whom they admit")
    func ownRoutes() async throws {
        let scene = try scene([])
        let request = try scene.releaseRequest("/countersign/v1/login/start", nonce: "a")
        #expect(await scene.refusal(of: request, for: .ownRoute) == nil)
        let refusal = try await scene.refusal(of: scene.releaseRequest("/countersign/v1/login/start", nonce: "b"))
        #expect(refusal?.code == .sessionEnded && refusal?.ended == nil, "no session was there to end")
    }
}
