import Testing

@testable import Countersign

/// What is signed and sent for which text, and what is not.
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
        #expect(try BaseURL(base, .required).target(path) == target)
    }

    @Test(arguments: [
        "orders", "", "http://api.example.com/v2/x", "https://evil.example.com/v2/x",
        "https://api.example.com:444/v2/x",
        "https://api.example.com/v3/x", "https://api.example.com/v22/x",
        "https://api.example.com@evil.example.com/v2/x",
        "https://api.example.com/v2/../admin", "/../admin", "/%2E%2e/admin", "/a/./b", "/a b", "/ü", "/a#b",
        "/a\r\nX: y", "//evil.example.com/../x",
    ])
    func isNotTaken(_ path: String) throws {
        let base = try BaseURL("https://api.example.com/v2", .required)
        #expect { try base.target(path) } throws: { error in
            if case CountersignError.misuse = error { true } else { false }
        }
    }

    @Test(arguments: [
        "api.example.com", "ftp://api.example.com", "https://", "https://user@example.com", "https://a.example.com:0",
        "https://a.example.com:65536", "https://a.example.com:8x", "https://a.example.com/v1?x=1",
        "https://a.example.com/../x", "https://a.example.com/v1#x", "http://a.example.com",
    ])
    func isNoBase(_ base: String) {
        #expect(throws: CountersignError.self) { try BaseURL(base, .required) }
    }

    @Test func theClearIsNamed() throws {
        let base = try BaseURL("http://127.0.0.1:8080", .noneSoThatAnybodyReadsAndChangesEverything)
        #expect(base.origin.description == "http://127.0.0.1:8080")
    }

    @Test func noMessageHoldsAQuery() throws {
        let base = try BaseURL("https://api.example.com", .required)
        #expect { try base.target("https://evil.example.com/x?token=SECRET") } throws: { error in
            !"\(error)".contains("SECRET")
        }
    }

    @Test func aQueryIsEncoded() {
        let request = APIRequest("/search?a=1").adding(query: ["q": "crème & brûlée", "q": "+"])
        #expect(request.path == "/search?a=1&q=cr%C3%A8me%20%26%20br%C3%BBl%C3%A9e&q=%2B")
    }
}
