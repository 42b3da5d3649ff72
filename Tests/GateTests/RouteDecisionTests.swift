import CountersignGate
import CountersignWire
import Testing

/// The rule that applies to a request.
@Suite struct RouteDecisionTests {
    private func rule(
        _ path: String, _ level: RouteRule.Level, _ methods: String..., enforcement: Enforcement? = nil
    ) throws -> RouteRule {
        try #require(
            RouteRule(
                prefix: Array(path.utf8), methods: methods.map { Array($0.utf8) }, level: level,
                enforcement: enforcement))
    }

    private func level(_ rules: RouteRules, _ path: String, _ method: String = "GET") throws
        -> RouteRule.Level
    {
        try rules.decision(method: Array(method.utf8).span, path: Array(path.utf8).span).level
    }

    @Test(
        "the longest path by whole segments, and of what a forgiving backend could mean the stricter",
        arguments: [
            ("/", .session), ("/v1", .signed), ("/v1/", .signed), ("/v1/pay", .device),
            ("/v1/pay/a", .device), ("/v1/payments", .signed), ("/v10", .session), ("/v1/pay/help", .open),
            ("/v1/pay/help.html", .device), ("/V1", .session), ("/V1/pay", .device), ("/v1/PAY", .device),
            ("/v1/pay.json", .device), ("/v1/pay.json/a", .device), ("/v1/p%61y", nil), ("/v1/pay@", .signed),
            ("/v1//pay", nil), ("/v1/PAY/HELP", .signed), ("/index.php/v1/pay", .device),
            ("/index.phar/v1/pay", .device), ("/v1/pay::$DATA", .device), ("/v1.2/pay", .session),
            ("/v1.cgi/pay", .device), ("/v1/a@b", .open), ("/v1/a%40b", .signed), ("/v1/a%40b/c", .signed),
        ] as [(String, RouteRule.Level?)])
    func longest(_ row: (path: String, level: RouteRule.Level?)) throws {
        let rules = RouteRules.rules(
            ("/", .session), ("/v1", .signed), ("/v1/pay", .device), ("/v1/pay/help", .open),
            ("/v1/a@b", .open))
        #expect((try? level(rules, row.path)) == row.level)
    }

    @Test("rules for methods stand before those for all, and GET is HEAD's")
    func methods() throws {
        let rules = try #require(
            RouteRules([
                rule("/", .session), rule("/news", .signed), rule("/news", .open, "GET"),
                rule("/", .open, "OPTIONS"),
                rule("/admin", .device, "GET"), rule("/admin", .open),
            ]))
        #expect(try level(rules, "/news/1") == .open && level(rules, "/news/1", "HEAD") == .open)
        #expect(try level(rules, "/news/1", "POST") == .signed && level(rules, "/a", "OPTIONS") == .open)
        #expect(try level(rules, "/admin", "HEAD") == .device && level(rules, "/admin", "get") == .open)
    }

    @Test("observing needs both of the rules that may be meant")
    func enforcement() throws {
        let rules = try #require(
            RouteRules([
                rule("/", .session, enforcement: .observe(until: 9)),
                rule("/pay", .session, enforcement: .enforce),
                rule("/Open", .session, enforcement: .observe(until: 5)),
            ]))
        func found(_ path: String) throws -> Enforcement? {
            try rules.decision(method: Array("GET".utf8).span, path: Array(path.utf8).span).enforcement
        }
        #expect(
            try found("/a") == .observe(until: 9) && found("/pay") == .enforce && found("/PAY") == .enforce)
        #expect(try found("/open") == .observe(until: 5))
        #expect(
            !Enforcement.observe(until: 5).isObserving(at: 5)
                && Enforcement.observe(until: 5).isObserving(at: 4))
    }

    @Test(
        "what is no rule",
        arguments: ["", "a", "/a/", "//a", "/a/../b", "/a%20b", "/a,b", "/a b", "/a;b", "/\u{e9}"])
    func noPath(_ path: String) { #expect(RouteRule(prefix: Array(path.utf8), level: .open) == nil) }

    @Test("there is one rule for each path and methods, and always one for all others")
    func setting() throws {
        let rules = try #require(RouteRules.rules(("/", .session)).setting(rule("/a", .open)))
        #expect(rules.differ && rules.rules.count == 2)
        #expect(try rules.setting(rule("/a", .device))?.rules.count == 2)
        #expect(rules.removing(prefix: Array("/".utf8), methods: []) == nil)
        #expect(rules.removing(prefix: Array("/a".utf8), methods: [])?.differ == false)
        #expect(try RouteRules([rule("/a", .open)]) == nil)
        #expect(try RouteRules([rule("/", .open), rule("/", .session)]) == nil)
    }
}
