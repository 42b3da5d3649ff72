// Proves which rates, address lists and origins are valid, which addresses and origins a rule admits, and that a
// path which a backend may read as that of a limited route keeps the route's limits.
import CountersignWire
import TestRounds
import Testing

@testable import CountersignGate

@Suite("Traffic rules")
struct TrafficRulesTests {
    @Test(
        "rates and their canonical form",
        arguments: [
            ("20/second", "20/second"), ("1/day", "1/day"), ("100/minute,burst=20", "100/minute,burst=20"),
            ("100/minute,burst=100", "100/minute"), ("0100/hour", "100/hour"),
            ("1000000/second", "1000000/second"), ("0/second", nil), ("1000001/second", nil), ("20", nil),
            ("20/", nil), ("20/week", nil), ("-1/hour", nil), ("20/seconds", nil), ("20/second,", nil),
            ("20/second,burst=0", nil), ("20/second,burst=x", nil), ("20/second,burst=1,burst=2", nil),
            ("", nil), ("/second", nil), ("1/2/second", nil),
        ] as [(String, String?)])
    func rates(_ text: String, canonical: String?) throws {
        let rate = RequestRate(text)
        #expect(rate?.text == canonical)
        guard let rate, let canonical else { return }
        #expect(RequestRate(canonical) == rate)
        #expect(rate.refillMicroseconds >= 1)
    }

    @Test(
        "addresses and lists of them",
        arguments: [
            // allowed, denied, address, is admitted
            ("", "", "203.0.113.1", true), ("", "203.0.113.0/24", "203.0.113.1", false),
            ("", "203.0.113.0/24", "203.0.114.1", true), ("203.0.113.0/24", "", "203.0.114.1", false),
            ("203.0.113.0/24", "203.0.113.1", "203.0.113.1", false),
            ("203.0.113.0/24", "203.0.113.1", "203.0.113.2", true),
            ("2001:db8::/32", "", "2001:db8:1::1", true),
            ("2001:db8::/32", "", "2001:db9::1", false), ("0.0.0.0/0", "", "2001:db8::1", false),
            ("0.0.0.0/0", "", "::ffff:203.0.113.1", true), ("::/0", "", "203.0.113.1", false),
            ("10.0.0.0/8,::/0", "", "2001:db8::1", true), ("", "0.0.0.0/0,::/0", "203.0.113.1", false),
        ])
    func addresses(_ row: (allowed: String, denied: String, address: String, isAdmitted: Bool)) throws {
        var rules = TrafficRules()
        rules.allowedAddresses = row.allowed.isEmpty ? [] : try #require(NetworkRange.list(row.allowed))
        rules.deniedAddresses = row.denied.isEmpty ? [] : try #require(NetworkRange.list(row.denied))
        #expect(rules.admits(try #require(NetworkAddress(text: row.address))) == row.isAdmitted)
    }

    @Test("a client of unknown address is served only where all are")
    func unknownAddress() throws {
        var rules = TrafficRules()
        rules.deniedAddresses = try #require(NetworkRange.list("0.0.0.0/0,::/0"))
        #expect(!rules.admits(nil) && TrafficRules().admits(nil))
        rules.deniedAddresses = []
        rules.allowedAddresses = try #require(NetworkRange.list("0.0.0.0/0,::/0"))
        #expect(!rules.admits(nil))
    }

    @Test(
        "lists that are none",
        arguments: [
            "", ",", "10.0.0.1/8", "10.0.0.0/33", "x", "10.0.0.0/8,", "10.0.0.0/", "::1/129", "10.0.0.0/8 ",
        ])
    func badLists(_ text: String) { #expect(NetworkRange.list(text) == nil) }

    @Test("a list is bounded")
    func longList() {
        func list(_ count: Int) -> String {
            (0..<count).map { "10.0.\($0 / 256).\($0 % 256)" }.joined(separator: ",")
        }
        #expect(NetworkRange.list(list(NetworkRange.most)) != nil)
        #expect(NetworkRange.list(list(NetworkRange.most + 1)) == nil)
    }

    @Test(
        "origins",
        arguments: [
            ("https://app.example.com", true), ("http://localhost:3000", true), ("https://[::1]:8443", true),
            ("https://a", true), ("https://app.example.com/", false), ("app.example.com", false),
            ("*", false), ("null", false), ("https://", false), ("https://:1", false),
            ("https://A.example", false), ("https://a:443", false), ("http://a:80", false),
            ("http://a:443", true), ("https://a b", false), ("https://a\r\nX: y", false), ("ftp://a", false),
        ])
    func origins(_ text: String, isOrigin: Bool) { #expect(CrossOriginRules.isOrigin(text) == isOrigin) }

    @Test("an origin with credentials comes before all origins without")
    func grants() {
        var rules = CrossOriginRules()
        func grant(_ origin: String) -> CrossOriginGrant? { rules.grant(to: Array(origin.utf8).span) }
        #expect(grant("https://a") == nil)
        rules.origins = ["*"]
        rules.credentialedOrigins = ["https://a"]
        #expect(grant("https://a") == CrossOriginGrant(origin: "https://a", allowsCredentials: true))
        #expect(grant("https://b") == CrossOriginGrant(origin: "*", allowsCredentials: false))
        #expect(grant("null") == CrossOriginGrant(origin: "*", allowsCredentials: false))
        rules.origins = ["https://b"]
        #expect(grant("https://b:1") == nil && grant("https://B") == nil && grant("null") == nil)
    }

    @Test(
        "a path that a backend may read as a limited route's keeps its limits",
        arguments: [
            ("/pay", true), ("/pay/x", true), ("/PAY", true), ("/pay.php", true),
            ("/index.php/pay", true), ("/a/b.cgi/Pay/x", true), ("/b.cgi/Pay/x", true), ("/payment", false),
            ("/", false), ("/other/pay", false), ("/%70ay", nil),
            ("/a.php/b.php/c.php/d.php/e.php/pay", true),
            ("/index.phar/pay", true), ("/x.svc/pay", true), ("/index.php8.2/pay", true),
            ("/pay::$DATA", true), ("/pay:$I30:$INDEX_ALLOCATION/x", true), ("/v1.2/pay", false),
            ("/pay:x", false),
            ("/a.b/a.b/a.b/a.b/a.b/a.b/a.b/a.b/a.b/pay", nil),
        ] as [(String, Bool?)])
    func limits(_ path: String, isLimited: Bool?) throws {
        var (limits, wide) = (RouteLimits(), RouteLimits())
        (limits.bodyBytes, wide.bodyBytes) = (10, 1_000)
        let limited = try #require(RouteRule(prefix: Array("/pay".utf8), level: .signed, limits: limits))
        // Also where the route `/` has limits of its own: they apply beside the narrower ones.
        for own in [RouteLimits(), wide] {
            let others = try #require(RouteRule(prefix: Array("/".utf8), level: .signed, limits: own))
            let rules = try #require(RouteRules([others, limited]))
            #expect(rules.differ && rules.limitTraffic)
            let (method, bytes) = (Array("GET".utf8), Array(path.utf8))
            guard let isLimited else {
                #expect(throws: Refusal.self) {
                    try rules.limiting(method: method.span, path: bytes.span)
                }
                continue
            }
            let limiting = try rules.limiting(method: method.span, path: bytes.span).map(\.prefixText)
            #expect(limiting.contains("/pay") == isLimited)
            let isAlsoPlain = !own.isEmpty && path != "/pay" && path != "/pay/x"
            #expect(limiting.contains("/") == isAlsoPlain)
            #expect(try rules.decision(method: method.span, path: bytes.span).level == .signed)
        }
    }

    private func rule(_ path: String, rate: String, methods: String...) throws -> RouteRule {
        var limits = RouteLimits()
        limits.rates.address = try #require(RequestRate(rate))
        return try #require(
            RouteRule(
                prefix: Array(path.utf8), methods: methods.map { Array($0.utf8) }, level: .signed,
                limits: limits))
    }

    private func limiting(_ rules: RouteRules, at path: String) throws -> [RouteRule] {
        try rules.limiting(method: Array("GET".utf8).span, path: Array(path.utf8).span)
    }

    @Test("of two rules with equal rates each counts its own requests")
    func equalRates() throws {
        let rules = try #require(RouteRules([rule("/", rate: "5/minute"), rule("/pay", rate: "5/minute")]))
        #expect(rules.differ)
        #expect(try limiting(rules, at: "/pay").map(\.prefixText) == ["/pay"])
        #expect(try limiting(rules, at: "/other").map(\.prefixText) == ["/"])
        let single = try #require(RouteRules([rule("/", rate: "5/minute")]))
        #expect(!single.differ)
        #expect(try limiting(single, at: "/x//y").map(\.prefixText) == ["/"])
    }

    @Test("the limits of all rules apply that a reading matches alike")
    func matchedAlike() throws {
        let rules = try #require(
            RouteRules([
                rule("/", rate: "9/second"), rule("/pay", rate: "9/minute"), rule("/PAY", rate: "9/hour"),
                rule("/a", rate: "9/minute", methods: "GET"),
                rule("/a", rate: "9/hour", methods: "GET", "PUT"), rule("/a", rate: "9/day"),
            ]))
        #expect(try Set(limiting(rules, at: "/Pay").map(\.prefixText)) == ["/", "/pay", "/PAY"])
        #expect(try limiting(rules, at: "/a").map(\.methods.count).sorted() == [1, 2])
    }

    @Test("the limits of a route apply to its path in every form that a backend may read as it")
    func allReadings() throws {
        var random = seededRandom()
        let paths = ["/pay", "/v1/pay", "/v1/a@b", "/v1.2/search", "/login.php"]
        var rules = try [rule("/", rate: "9/second")]
        for (index, path) in paths.enumerated() { rules.append(try rule(path, rate: "\(index + 1)/hour")) }
        let route = try #require(RouteRules(rules))
        for _ in 0..<rounds(20_000) {
            let limited = paths.randomElement(using: &random) ?? "/pay"
            let text = variant(of: limited, random: &random)
            let found = try limiting(route, at: text).map(\.prefixText)
            #expect(found.contains(limited), "\(text)")
        }
    }

    /// The path with what a lenient backend ignores.
    private func variant(of path: String, random: inout SplitMix64) -> String {
        var segments = path.dropFirst().split(separator: "/").map { name in
            var text = ""
            for character in name {
                switch Int.random(in: 0..<4, using: &random) {
                case 0: text += character.uppercased()
                case 1 where character == "@": text += "%40"
                default: text += String(character)
                }
            }
            return text + (["", "", "", ".html", ".x.y", "::$DATA"].randomElement(using: &random) ?? "")
        }
        if Bool.random(using: &random) {
            let program = ["index.php", "x.phar", "A.Cgi", "s.svc", "p.php8.2"].randomElement(using: &random)
            segments.insert(program ?? "", at: Int.random(in: 0..<segments.count, using: &random))
        }
        if Bool.random(using: &random) { segments.append("more") }
        return "/" + segments.joined(separator: "/")
    }
}
