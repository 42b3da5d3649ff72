import CountersignGate
import CountersignSchemes
import CountersignWire
import TestRounds
import Testing

@testable import CountersignAuthority

/// Targets that a backend could take for the endpoints of legacy clients: the legacy scripts, and an app's
/// own paths.
@Suite struct LegacyDoorsTests {
    private func reading(_ method: String, _ target: String, _ paths: String? = nil) throws -> LegacyEndpoints
        .Match?
    {
        var policy = Policy()
        if let paths {
            let spelled = PolicyKey.applyLegacyPaths(&policy, from: paths)
            #expect(spelled == paths)
        }
        let request = Draft(method: method, target: Array(target.utf8), authority: "api.example.com")
            .request()
        return LegacyEndpoints(policy).match(for: request)
    }

    @Test("as they are called")
    func called() throws {
        #expect(try reading("GET", "/login/login.php?username=a") == .called(.login([.query])))
        #expect(try reading("POST", "/login/login.php") == .called(.login([.form])))
        #expect(try reading("POST", "/login/loginhmac.php?x") == .called(.login([.minute])))
        #expect(try reading("POST", "/login/token.php") == .called(.token))
    }

    @Test("by other methods", arguments: ["HEAD", "PUT", "OPTIONS", "get", "DELETE"])
    func methods(_ method: String) throws {
        #expect(try reading(method, "/login/login.php") == .ambiguous(.login))
        #expect(try reading(method, "/login/token.php") == .ambiguous(.token))
        #expect(try reading(method, "/user/login", "login:/user/login") == .ambiguous(.login))
    }

    @Test(
        "in other spellings",
        arguments: [
            "//login/login.php", "/login//login.php", "/login/login.php/", "/login/login.php/x.css",
            "/login/./login.php", "/./login/login.php", "/a/../login/login.php", "/login/a/../login.php",
            "/../login/login.php", "/a/..;b=c/login/login.php", "/login;a=b/login.php",
            "/login/login.php;jsessionid=1", "/%6Cogin/login.php", "/login/login%2Ephp", "/login%2Flogin.php",
            "/login%5clogin.php", "/login\\login.php", "/%2e/login/login.php", "/%252e/login/%256cogin.php",
            "/login%252flogin.php", "/login%c0%aflogin.php", "/login/login%C0%AEphp", "/Login/LOGIN.PHP",
            "/login/login.php.", "/login/login.php%20", "/login/login.php%00", "/login/login.php%00.png",
            "/login%e0%80%aflogin.php", "/login%F0%80%80%AFlogin.php", "/login/login%E0%80%AEphp",
            "/x/..%20/login/login.php", "/index.php/login/login.php", "/x/y.CGI/login/login.php",
            "/index.php%2Flogin\\login.php", "/login/run.do/login.php",
            "/a.b/a.b/a.b/a.b/a.b/a.b/a.b/a.b/a.b/c", "/login/login.php%3Fa", "/login/login.php%3b",
            "/login/login.php%2f", "/login/login", "/login/login.php5", "/login/login.phpx", "/Login/Login/x",
            "/login.php/login.php", "/login.html/login.php", "/login.x/login", "/log%C4%B1n/login.php",
            "/login/%EF%BD%8Cogin.php%FF", "/log%u0069n/login.php", "/login/login.php::$DATA",
            "/login:$I30:$INDEX_ALLOCATION/login.php", "/index.phar/login/login.php",
            "/index.php8.2/login/login", "/login/x.svc/login.php", "/api/100%25", "/api/x;y", "/api//x",
        ])
    func spellings(_ target: String) throws {
        #expect(try reading("POST", target) == .ambiguous(.login))
        #expect(try reading("GET", target) == .ambiguous(.login))
    }

    @Test(
        "what is another path to everybody",
        arguments: [
            "/login/loginx", "/login", "/login.php", "/v1/login/login.php", "/login/x/login.php",
            "/a?/login/login.php", "/api/users.json", "/login/xlogin.php", "/v1.2/news", "/files/report.pdf",
            "/users/anna.smith/photos", "/v1.2/login/login.php", "/caf%C3%A9/a%20b", "/login/log:in", "*",
        ])
    func others(_ target: String) throws { #expect(try reading("POST", target) == nil) }

    private static let own = "login:/user/login,logout:/user/logout,signup:/v1/new/"

    @Test("a path of the app's own stands in place of the scripts, and takes all rungs")
    func ownPaths() throws {
        let own = LegacyDoorsTests.own
        #expect(try reading("GET", "/user/login?a=b", own) == .called(.login([.query])))
        #expect(try reading("POST", "/user/login", own) == .called(.login([.form, .minute])))
        #expect(try reading("GET", "/user/logout", own) == .called(.logout))
        #expect(try reading("POST", "/v1/new/", own) == .called(.signUp(.form)))
        #expect(try reading("POST", "/login/token.php", own) == .called(.token))
        #expect(try reading("POST", "/login/login.php", own) == nil)
        #expect(try reading("POST", "/user/loginx", own) == nil)
        #expect(try reading("POST", "/api/user.info", "login:/api/user.login") == nil)
        for target in [
            "/user/login/", "/User/Login", "/user/login.php", "/user/login/a", "//user/login",
            "/user%2Flogin", "/user.php/login", "/u%u0073er/login", "/u%C5%BFer/login",
        ] {
            #expect(try reading("POST", target, own) == .ambiguous(.login), "\(target)")
        }
        #expect(try reading("POST", "/v1/new", own) == .ambiguous(.signUp))
        let tokensFirst = "logout:/user/logout,login:/user/login"
        #expect(try reading("POST", "/a//b", tokensFirst) == .ambiguous(.login))
    }

    @Test(
        "the screen passes whatever may mean a door, and little else",
        arguments: [
            ("/user/login", true), ("/USER/LOGIN.php", true), ("/a/../user/login", true),
            ("/user\\login", true), ("/user%2flogin", true), ("/v1/new", true), ("/user/logi", false),
            ("/login/user", false), ("/", false), ("/api/items/12", false), ("/caf%C3%A9", false),
            ("/user/signin", false), ("/login/login.php", false), ("/index.php/user/login", true),
            ("/user/index.php/login", true), ("/index.php/user/signin", false), ("/user.x/login", true),
            ("/a;b", true), ("/u%C5%BFer/login", true), ("/v1.2/user/login", false),
            ("/v1.2/new", false), ("/v1.x/new", true),
        ])
    func screen(_ row: (path: String, isPassed: Bool)) throws {
        let app = try app(with: LegacyDoorsTests.own)
        let (screen, empty) = (
            LegacyPathFilter(of: [app], generation: 1), LegacyPathFilter(of: [], generation: 1)
        )
        let path = Array(row.path.utf8)
        let (isPassed, isPassedByNone) = (screen.mayMatch(path.span), empty.mayMatch(path.span))
        #expect(isPassed == row.isPassed)
        #expect(!isPassedByNone)
    }

    @Test("an endpoint treats every path as possible that a rule for its path covers or refuses")
    func asStrictAsRoutes() throws {
        var random = seededRandom()
        let doors = ["/login/login.php", "/user/login", "/v1/new/", "/api/user.login", "/index.php/in", "/x"]
        let twists = [
            "", "", "", "", ".php", ".x.y", "::$DATA", ";v=1", "%20", "%", "%C5%BF", "%2e", "/", "/..",
            "/a.b", "/index.phar", "x", ".",
        ]
        var (covered, refused, others) = (0, 0, 0)
        let count = rounds(50_000)
        for _ in 0..<count {
            let door = doors.randomElement(using: &random) ?? "/x"
            var segments = door.split(separator: "/").map { name in
                (Int.random(in: 0..<4, using: &random) == 0 ? name.uppercased() : String(name))
                    + (twists.randomElement(using: &random) ?? "")
            }
            if Int.random(in: 0..<4, using: &random) == 0 {
                let extra = ["index.php", "v1.2", "x.svc", "a", "s.b"].randomElement(using: &random) ?? "a"
                segments.insert(extra, at: Int.random(in: 0...segments.count, using: &random))
            }
            let path = Array(("/" + segments.joined(separator: "/")).utf8)
            let prefix = Array(door.utf8.prefix(door.hasSuffix("/") ? door.utf8.count - 1 : door.utf8.count))
            let rule = try #require(RouteRule(prefix: prefix, level: .device))
            let rules = try #require(RouteRules(all: .open).setting(rule))
            let level = try? rules.decision(method: Array("POST".utf8).span, path: path.span).level
            let text = String(decoding: path, as: UTF8.self)
            let match = try reading("POST", text, "login:\(door)")
            switch level {
            case nil: refused += 1
            case .device: covered += 1
            default: others += 1
            }
            #expect(level == .open || match != nil, "\(text) for \(door)")
            let app = try app(with: "login:\(door)")
            let isPassed = LegacyPathFilter(of: [app], generation: 1).mayMatch(path.span)
            #expect(isPassed == (match != nil), "\(text) for \(door)")
        }
        #expect(min(covered, refused, others) > count / 50)
    }

    private func app(with paths: String) throws -> LegacyApp {
        var policy = Policy()
        _ = PolicyKey.applyLegacyPaths(&policy, from: paths)
        return LegacyApp(name: try #require(AppName("demo")), policy: policy, ladder: LadderSettings())
    }
}
