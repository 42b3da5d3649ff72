import CountersignGate
import CountersignWire
import Testing

extension RouteRules {
    /// For all methods.
    static func rules(_ rows: (path: String, level: RouteRule.Level)...) -> RouteRules {
        RouteRules(rows.compactMap { RouteRule(prefix: Array($0.path.utf8), level: $0.level) })
            ?? RouteRules(all: .device)
    }
}

/// The routes that a release opens without a session.
@Suite struct RouteRuleTests {
    private func scene(_ rules: RouteRules) throws -> SessionScene { try SessionScene { $0.routes = rules } }

    @Test(
        "routes without a session",
        arguments: [
            ("/public", nil), ("/public/", nil), ("/public/a/b", nil), ("/public?x=/../admin", nil),
            ("/v1/news", nil), ("/public/%C3%A9", nil), ("/public/a%20b/c.d", nil),
            ("/public/@:!$&'()*+,=", nil), ("/public/%C3%A9;v=1", .malformed), ("/public/a;b", .malformed),
            ("/public;a", .malformed), ("/public/a./b", .malformed), ("/public/a%20/b", .malformed),
            ("/public/..%20/admin", .malformed), ("/public/...", .malformed), ("/public/%3fa", .malformed),
            ("/public/%23", .malformed), ("/public/#/admin", .malformed), ("/public/%7f", .malformed),
            ("/public/%C3", .malformed), ("/public/%80", .malformed), ("/public/%ED%A0%80", .malformed),
            ("/public/%FF", .malformed), ("/public/%C3%A9/%C3/%A9", .malformed),
            ("/public/%u002e", .malformed), ("/public/%0d%0a", .malformed), ("/publicity", .sessionRequired),
            ("/", .sessionRequired), ("/v1", .sessionRequired), ("/Public", .sessionRequired),
            ("/public/../admin", .malformed), ("/public/./a", .malformed), ("/public//a", .malformed),
            ("//public", .malformed), ("/public/..", .malformed), ("/public/..;x/admin", .malformed),
            ("/public/;x", .malformed), ("/public/%2e%2e/admin", .malformed),
            ("/public/..%2fadmin", .malformed), ("/public%2Fa", .malformed), ("/publ%69c", .malformed),
            ("/public/..%5cadmin", .malformed), ("/public/..\\admin", .malformed),
            ("/public/%zz", .malformed), ("/public/%", .malformed), ("/public/%00", .malformed),
            ("/public/%252e%252e/admin", .malformed), ("/public/100%25", .malformed),
            ("/public/..%3bx/admin", .malformed), ("/public/%3B", .malformed),
            ("/public/%c0%ae%c0%ae/x", .malformed), ("/public/%C1%9C", .malformed),
            ("/public/%E0%80%AF", .malformed), ("/public/%f0%80%80%af", .malformed),
            ("/public/%F8%80%80%80%AF", .malformed), ("/public/%E0%A4%B9", nil),
            // Letters that some fold to ASCII: the Kelvin sign, the long s, i without and with a dot.
            ("/public/%E2%84%AA", .malformed), ("/public/%c5%bf", .malformed), ("/%C4%B1", .malformed),
            ("/%C4%B0", .malformed), ("/public/%F0%9F%98%80", nil),
        ] as [(String, Refusal.Code?)])
    func rules(_ row: (target: String, code: Refusal.Code?)) async throws {
        let scene = try scene(.rules(("/", .session), ("/public", .signed), ("/v1/news", .signed)))
        #expect(try await scene.refusal(of: scene.releaseRequest(row.target))?.code == row.code)
        // A session opens all of them; an ambiguous path is refused to every caller.
        let ofSession = try await scene.refusal(of: scene.request(target: row.target))?.code
        #expect(ofSession == (row.code == .malformed ? .malformed : nil))
    }

    @Test(
        "where routes do not differ, paths are as they are",
        arguments: [.signed, .session] as [RouteRule.Level])
    func noRules(_ level: RouteRule.Level) async throws {
        for target in ["/a//b", "/a/../b", "/a;b/%2e", "/%zz"] {
            let scene = try scene(RouteRules(all: level))
            #expect(try await scene.refusal(of: scene.request(target: target)) == nil)
        }
    }

    @Test("the authority's own routes say themselves whom they admit")
    func ownRoutes() async throws {
        let scene = try scene(RouteRules(all: .session))
        let request = try scene.releaseRequest("/countersign/v1/login/start", nonce: "a")
        #expect(await scene.refusal(of: request, for: .ownRoute) == nil)
        let refusal = try await scene.refusal(
            of: scene.releaseRequest("/countersign/v1/login/start", nonce: "b"))
        #expect(
            refusal?.code == .sessionRequired && refusal?.endedSession == nil, "no session was there to end")
    }
}
