import CountersignSchemes
import CountersignWire
import Testing

@testable import CountersignServer

/// Which targets a backend could take for the scripts that old clients sign in at.
@Suite struct LegacyPathTests {
    private func reading(_ method: String, _ target: String) -> LegacyPath.Reading? {
        LegacyPath.reading(
            of: Draft(method: method, target: Array(target.utf8), authority: "api.example.com").request())
    }

    @Test("as they are called")
    func called() {
        #expect(reading("GET", "/login/login.php?username=a") == .called(.login(.query)))
        #expect(reading("POST", "/login/login.php") == .called(.login(.form)))
        #expect(reading("POST", "/login/loginhmac.php?x") == .called(.login(.minute)))
        #expect(reading("POST", "/login/token.php") == .called(.token))
    }

    @Test("by other methods", arguments: ["HEAD", "PUT", "OPTIONS", "get", "DELETE"])
    func methods(_ method: String) {
        #expect(reading(method, "/login/login.php") == .meant(.login))
        #expect(reading(method, "/login/token.php") == .meant(.token))
    }

    @Test(
        "in other spellings",
        arguments: [
            "//login/login.php", "/login//login.php", "/login/login.php/", "/login/login.php/x.css",
            "/login/./login.php",
            "/./login/login.php", "/a/../login/login.php", "/login/a/../login.php", "/../login/login.php",
            "/a/..;b=c/login/login.php", "/login;a=b/login.php", "/login/login.php;jsessionid=1", "/%6Cogin/login.php",
            "/login/login%2Ephp", "/login%2Flogin.php", "/login%5clogin.php", "/login\\login.php",
            "/%2e/login/login.php",
            "/%252e/login/%256cogin.php", "/login%252flogin.php", "/login%c0%aflogin.php", "/login/login%C0%AEphp",
            "/Login/LOGIN.PHP", "/login/login.php.", "/login/login.php%20", "/login/login.php%00",
            "/login/login.php%00.png",
            "/login%e0%80%aflogin.php", "/login%F0%80%80%AFlogin.php", "/login/login%E0%80%AEphp",
            "/x/..%20/login/login.php", "/login/login.php%3Fa", "/login/login.php%3b", "/login/login.php%2f",
        ])
    func spellings(_ target: String) {
        #expect(reading("POST", target) == .meant(.login))
        #expect(reading("GET", target) == .meant(.login))
    }

    @Test(
        "what is another path to everybody",
        arguments: [
            "/login/login.phpx", "/login/login", "/login", "/login.php", "/v1/login/login.php", "/login/x/login.php",
            "/login/login.php/../x", "/a?/login/login.php", "/api/users.json", "/api/100%25", "/login/xlogin.php",
        ])
    func others(_ target: String) { #expect(reading("POST", target) == nil) }
}
