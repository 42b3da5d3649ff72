import CountersignTrust
import Testing

@testable import Countersign

/// The base URLs that are accepted, and the requests that are signed and sent for them.
@Suite struct BaseURLTests {
    @Test(arguments: [
        ("https://api.example.com", "/orders?id=7", "/orders?id=7"),
        ("https://api.example.com/", "/", "/"),
        ("https://api.example.com/v2/", "/orders", "/v2/orders"),
        ("https://api.example.com/v2", "https://api.example.com/v2/orders", "/v2/orders"),
        ("https://api.example.com/v2", "https://API.example.com:443/v2?x=/../y", "/v2?x=/../y"),
        ("https://api.example.com", "https://api.example.com", "/"),
        ("https://api.example.com", "https://api.example.com?x=1", "/?x=1"),
        ("https://[2001:db8::1]:8443", "https://[2001:db8::1]:8443/x", "/x"),
    ])
    func isTaken(_ base: String, _ path: String, _ target: String) throws {
        #expect(try BaseURL(base, encryption: .required).target(path) == target)
    }

    @Test(arguments: [
        "orders", "", "http://api.example.com/v2/x", "https://evil.example.com/v2/x",
        "https://api.example.com:444/v2/x", "https://api.example.com/v3/x", "https://api.example.com/v22/x",
        "https://api.example.com@evil.example.com/v2/x", "https://api.example.com/v2/../admin", "/../admin",
        "/%2E%2e/admin", "/a/./b", "/a b", "/ü", "/a#b", "/a\r\nX: y", "//evil.example.com/../x",
    ])
    func isNotTaken(_ path: String) throws {
        let base = try BaseURL("https://api.example.com/v2", encryption: .required)
        #expect { try base.target(path) } throws: { error in
            if case CountersignError.misuse = error { true } else { false }
        }
    }

    @Test(arguments: [
        "api.example.com", "ftp://api.example.com", "https://", "https://user@example.com",
        "https://a.example.com:0",
        "https://a.example.com:65536", "https://a.example.com:8x", "https://a.example.com/v1?x=1",
        "https://a.example.com/../x", "https://a.example.com/v1#x", "http://a.example.com",
    ])
    func isNoBase(_ base: String) {
        #expect(throws: CountersignError.self) { try BaseURL(base, encryption: .required) }
    }

    @Test(arguments: [
        ("https://API.example.com", "api.example.com"),
        ("https://api.example.com:8443/v2", "api.example.com"),
        ("https://192.0.2.7:8443", "192.0.2.7"), ("https://[2001:DB8::1]:8443/v2", "2001:db8::1"),
    ])
    func aRuleIsForTheHostOfTheBaseURLAlone(_ url: String, _ host: String) throws {
        let rule = try Trust.Rule.host(ofBaseURL: url, .system, mode: .reportOnly)
        #expect(rule.pattern.description == host && rule.mode == .reportOnly)
        #expect(rule.pattern.matches(try BaseURL(url, encryption: .required).origin.host))
        #expect(!rule.pattern.matches(try Trust.Host("other.example.com")))
    }

    @Test(arguments: [
        "api.example.com", "http://api.example.com", "https://*.example.com", "https://a@b.example.com",
    ])
    func noRuleIsForABaseURLThatIsNone(_ url: String) {
        #expect(throws: CountersignError.self) { try Trust.Rule.host(ofBaseURL: url, .system) }
    }

    @Test func aRuleForABaseURLHasItsPins() throws {
        let pins = ["sha256/MDEyMzQ1Njc4OWFiY2RlZjAxMjM0NTY3ODlhYmNkZWY="]
        let backups = ["sha256/ZmVkY2JhOTg3NjU0MzIxMGZlZGNiYTk4NzY1NDMyMTA="]
        let trust = Trust(
            [try .host(ofBaseURL: "https://api.example.com:8443/v2", pins: pins, backups: backups)],
            others: .refused)
        #expect(trust.isPinned(try Trust.Host("api.example.com")))
        #expect(throws: TrustError.self) {
            try Trust.Rule.host(ofBaseURL: "https://api.example.com", pins: pins, backups: [])
        }
    }

    @Test func theClearIsNamed() throws {
        let base = try BaseURL(
            "http://127.0.0.1:8080", encryption: .noneSoThatAnybodyReadsAndChangesEverything)
        #expect(base.origin.description == "http://127.0.0.1:8080")
    }

    @Test func noMessageHoldsAQuery() throws {
        let base = try BaseURL("https://api.example.com", encryption: .required)
        #expect { try base.target("https://evil.example.com/x?token=SECRET") } throws: { error in
            !"\(error)".contains("SECRET")
        }
    }

    @Test func aQueryIsEncoded() {
        let request = APIRequest("/search?a=1").adding(query: ["q": "crème & brûlée", "q": "+"])
        #expect(request.path == "/search?a=1&q=cr%C3%A8me%20%26%20br%C3%BBl%C3%A9e&q=%2B")
    }
}
