import CountersignGate
import CountersignSchemes
import CountersignWire
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
            "/a.php/b.php/c.php/d.php/e.php/login", "/login/login.php%3Fa", "/login/login.php%3b",
            "/login/login.php%2f",
        ])
    func spellings(_ target: String) throws {
        #expect(try reading("POST", target) == .ambiguous(.login))
        #expect(try reading("GET", target) == .ambiguous(.login))
    }

    @Test(
        "what is another path to everybody",
        arguments: [
            "/login/login.phpx", "/login/login", "/login", "/login.php", "/v1/login/login.php",
            "/login/x/login.php", "/login/login.php/../x", "/a?/login/login.php", "/api/users.json",
            "/api/100%25", "/login/xlogin.php",
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
        for target in [
            "/user/login/", "/User/Login", "/user/login.php", "/user/login/a", "//user/login",
            "/user%2Flogin",
        ] {
            #expect(try reading("POST", target, own) == .ambiguous(.login), "\(target)")
        }
        #expect(try reading("POST", "/v1/new", own) == .ambiguous(.signUp))
    }

    @Test(
        "the screen passes whatever may mean a door, and little else",
        arguments: [
            ("/user/login", true), ("/USER/LOGIN.php", true), ("/a/../user/login", true),
            ("/user\\login", true), ("/user%2flogin", true), ("/v1/new", true), ("/user/logi", false),
            ("/login/user", false), ("/", false), ("/api/items/12", false), ("/caf%C3%A9", false),
            ("/user/signin", false), ("/login/login.php", false), ("/index.php/user/login", true),
            ("/user/index.php/login", true), ("/index.php/user/signin", false),
        ])
    func screen(_ row: (path: String, isPassed: Bool)) throws {
        var policy = Policy()
        _ = PolicyKey.applyLegacyPaths(&policy, from: LegacyDoorsTests.own)
        let app = LegacyApp(name: try #require(AppName("demo")), policy: policy, ladder: LadderSettings())
        let (screen, empty) = (
            LegacyPathFilter(of: [app], generation: 1), LegacyPathFilter(of: [], generation: 1)
        )
        let path = Array(row.path.utf8)
        let (isPassed, isPassedByNone) = (screen.mayMatch(path.span), empty.mayMatch(path.span))
        #expect(isPassed == row.isPassed)
        #expect(!isPassedByNone)
    }
}
