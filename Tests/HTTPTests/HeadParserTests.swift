import CountersignWire
import Testing

@testable import CountersignHTTP

@Suite struct HeadParserTests {
    private func parse(
        _ text: String, limits: Limits = Limits(), rules: HeadRules = HeadRules(),
        transport: Request.Transport? = nil
    ) throws -> (Request, HeadParser.Parsed)? {
        var parser = HeadParser(limits: limits, rules: rules, transport: transport)
        var request = Request()
        let bytes = Array(text.utf8)
        guard let parsed = try parser.parse(bytes.span, into: &request) else { return nil }
        return (request, parsed)
    }

    @Test func readsARequest() throws {
        let (request, parsed) = try #require(
            try parse(
                """
                POST /a/b?x=1&y=%2F HTTP/1.1\r\nHost: Example.com:8443\r\nX-One:  two \t\r\nContent-Length: \
                5\r\n\r\nhello
                """
            ))
        #expect(request.text(request.method) == "POST")
        #expect(request.text(request.target) == "/a/b?x=1&y=%2F")
        #expect(request.text(request.path) == "/a/b")
        #expect(request.query.map(request.text) == "x=1&y=%2F")
        #expect(request.text(request.authority) == "Example.com:8443")
        #expect(request.fields.map { request.text($0.name) } == ["host", "x-one", "content-length"])
        #expect(request.text(request.fields[1].value) == "two")
        #expect(request.framing == .length(5))
        #expect(parsed.keepsAlive)
        #expect(request.head.count == parsed.length)
    }

    @Test func readsByteByByteAsItReadsAtOnce() throws {
        let bytes = Array("GET /a?b HTTP/1.1\r\nHost: h\r\nA: b\r\n\r\n".utf8)
        var parser = HeadParser(limits: Limits())
        var request = Request()
        for end in 0..<bytes.count {
            let early = try parser.parse(bytes.span.extracting(0..<end), into: &request)
            #expect(early == nil)
        }
        let parsed = try parser.parse(bytes.span, into: &request)
        #expect(parsed?.length == bytes.count)
        #expect(request.text(request.target) == "/a?b")
    }

    @Test("what ends a line only for some, and a Connection field that takes a field of the caller's away")
    func refusesWhatOthersReadDifferently() {
        for field in [
            "A: b\rX: c\r\n", "A: b\rXY: c\r\n", "Connection: authorization\r\nAuthorization: x\r\n",
        ] {
            #expect(throws: Refusal.self, "\(field)") {
                try parse("GET / HTTP/1.1\r\nHost: h\r\n\(field)\r\n")
            }
        }
    }

    @Test(arguments: [
        ("", true), ("Connection: close\r\n", false), ("Connection: foo, Close\r\n", false),
        ("Connection: keep-alive\r\n", true),
    ])
    func knowsWhetherTheConnectionGoesOn(field: String, keepsAlive: Bool) throws {
        let parsed = try #require(try parse("GET / HTTP/1.1\r\nHost: h\r\n\(field)\r\n")?.1)
        #expect(parsed.keepsAlive == keepsAlive)
    }

    @Test func comparesSoManyMembersOfConnectionAndNoMore() throws {
        let members = (1...64).map { "x-\($0)" }.joined(separator: ",")
        let head = "GET / HTTP/1.1\r\nHost: h\r\nX-0: a\r\nX-64: b\r\nConnection: , ,\(members)"
        let (request, _) = try #require(try parse("\(head)\r\n\r\n"))
        #expect(request.hopByHopFields == [2])
        #expect { _ = try parse("\(head), x\r\n\r\n") } throws: { ($0 as? Refusal)?.code == .malformed }
    }

    /// Each of these is ambiguous between known parsers, or valid for none.
    @Test(arguments: [
        "\r\n\r\nGET / HTTP/1.1\r\nHost: h\r\n\r\n", " GET / HTTP/1.1\r\nHost: h\r\n\r\n",
        "\nGET / HTTP/1.1\r\nHost: h\r\n\r\n", "\rGET / HTTP/1.1\r\nHost: h\r\n\r\n", "\r\r\n",
        "get / HTTP/1.1\r\nHost: h\r\n\r\n", "GET1 / HTTP/1.1\r\nHost: h\r\n\r\n",
        "M-SEARCH / HTTP/1.1\r\nHost: h\r\n\r\n", "G_T / HTTP/1.1\r\nHost: h\r\n\r\n",
        "CONNECT / HTTP/1.1\r\nHost: h\r\n\r\n", "CONNECT h:443 HTTP/1.1\r\nHost: h:443\r\n\r\n",
        "PRI / HTTP/1.1\r\nHost: h\r\n\r\n",
        "GET / HTTP/1.1\r\nHost: h\r\nExpect: 100-continue\r\nExpect: 100-continue\r\n\r\n",
        "TRACE / HTTP/1.1\r\nHost: h\r\n\r\n", "Trace / HTTP/1.1\r\nHost: h\r\n\r\n",
        "GET  / HTTP/1.1\r\nHost: h\r\n\r\n", "GET / HTTP/1.1 \r\nHost: h\r\n\r\n",
        "GET / HTTP/2.0\r\nHost: h\r\n\r\n", "GET /\r\nHost: h\r\n\r\n", "GET / HTTP/1.\r\nHost: h\r\n\r\n",
        "GET http://h HTTP/1.1\r\nHost: h\r\n\r\n", "GET http://h?a HTTP/1.1\r\nHost: h\r\n\r\n",
        "GET http:/// HTTP/1.1\r\nHost: h\r\n\r\n", "GET http://other/ HTTP/1.1\r\nHost: h\r\n\r\n",
        "GET http://h:80/ HTTP/1.1\r\nHost: h\r\n\r\n", "GET http://u@h/ HTTP/1.1\r\nHost: h\r\n\r\n",
        "GET ftp://h/ HTTP/1.1\r\nHost: h\r\n\r\n", "GET http:/h/ HTTP/1.1\r\nHost: h\r\n\r\n",
        "GET http://h/ HTTP/1.1\r\n\r\n", "GET http://h\\@x/ HTTP/1.1\r\nHost: h\r\n\r\n",
        "GET //h/ HTTP/1.1\r\n\r\n", "GET * HTTP/1.1\r\nHost: h\r\n\r\n",
        "GET /#a HTTP/1.1\r\nHost: h\r\n\r\n", "GET /a\u{0}b HTTP/1.1\r\nHost: h\r\n\r\n",
        "GET /ü HTTP/1.1\r\nHost: h\r\n\r\n", "GET / HTTP/1.1\nHost: h\n\n",
        "GET / HTTP/1.1\r\nHost: h\n\r\n", "GET / HTTP/1.1\r\nHost: h\rX: y\r\n\r\n",
        "GET / HTTP/1.1\r\nHost : h\r\n\r\n", "GET / HTTP/1.1\r\nHost: h\r\n folded\r\n\r\n",
        "GET / HTTP/1.1\r\nHost: h\r\n: x\r\n\r\n", "GET / HTTP/1.1\r\nHost: h\r\nA\u{0}: x\r\n\r\n",
        "GET / HTTP/1.1\r\nHost: h\r\nA: x\u{0}y\r\n\r\n", "GET / HTTP/1.1\r\nHost: h\r\nno colon\r\n\r\n",
        "GET / HTTP/1.1\r\n\r\n", "GET / HTTP/1.0\r\n\r\n", "GET / HTTP/1.1\r\nHost: \r\n\r\n",
        "GET / HTTP/1.1\r\nHost: h\r\nHost: h\r\n\r\n", "GET / HTTP/1.1\r\nHost: a,b\r\n\r\n",
        "GET / HTTP/1.1\r\nHost: u@h\r\n\r\n",
        "POST / HTTP/1.1\r\nHost: h\r\nContent-Length: 1\r\nContent-Length: 1\r\n\r\n",
        "POST / HTTP/1.1\r\nHost: h\r\nContent-Length: 1, 1\r\n\r\n",
        "POST / HTTP/1.1\r\nHost: h\r\nContent-Length: +1\r\n\r\n",
        "POST / HTTP/1.1\r\nHost: h\r\nContent-Length: -1\r\n\r\n",
        "POST / HTTP/1.1\r\nHost: h\r\nContent-Length: 0x1\r\n\r\n",
        "POST / HTTP/1.1\r\nHost: h\r\nContent-Length: \r\n\r\n",
        "POST / HTTP/1.1\r\nHost: h\r\nContent-Length: 9999999999999999999\r\n\r\n",
        "POST / HTTP/1.1\r\nHost: h\r\nContent-Length: 1\r\nTransfer-Encoding: chunked\r\n\r\n",
        "POST / HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: xchunked\r\n\r\n",
        "POST / HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: gzip, chunked\r\n\r\n",
        "POST / HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n\r\n",
        "GET / HTTP/1.1\r\nHost: h\r\nConnection: close, Content-Type\r\n\r\n",
        "POST / HTTP/1.1\r\nHost: h\r\nContent-Type: text/plain\r\nContent-Type: text/html\r\n\r\n",
        "POST / HTTP/1.1\r\nHost: h\r\nContent-Type: a/b\r\ncontent-type: a/b\r\n\r\n",
        "POST / HTTP/1.0\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\n",
        "GET / HTTP/1.1\r\nHost: h\r\nExpect: yes\r\n\r\n",
    ])
    func refuses(_ text: String) {
        #expect { _ = try parse(text) } throws: { ($0 as? Refusal)?.code == .malformed }
    }

    @Test func skipsOneEmptyLineBeforeARequest() throws {
        let bytes = Array("\r\nGET /a HTTP/1.1\r\nHost: h\r\n\r\n".utf8)
        var parser = HeadParser(limits: Limits())
        var request = Request()
        for end in 0..<bytes.count {
            let early = try parser.parse(bytes.span.extracting(0..<end), into: &request)
            #expect(early == nil)
        }
        #expect(try parser.parse(bytes.span, into: &request)?.length == bytes.count)
        #expect(request.text(request.target) == "/a")
        #expect(request.head.count == bytes.count - 2)
    }

    @Test(arguments: ["http://Example.com:81", "HTTPS://example.com:81"])
    func readsTheAbsoluteFormAsTheOriginForm(prefix: String) throws {
        let text = "GET \(prefix)/a/b?c=%2F HTTP/1.1\r\nHost: example.COM:81\r\n\r\n"
        let request = try #require(try parse(text)).0
        #expect(request.text(request.target) == "/a/b?c=%2F")
        #expect(request.text(request.path) == "/a/b")
        #expect(request.query.map(request.text) == "c=%2F")
        #expect(request.text(request.requestTarget) == "\(prefix)/a/b?c=%2F")
        #expect(request.text(request.authority) == "example.COM:81")
    }

    @Test func asksTheAbsoluteFormForTheSchemeOfTheListener() throws {
        let text = { (scheme: String) in "GET \(scheme)://h/ HTTP/1.1\r\nHost: h\r\n\r\n" }
        #expect(try parse(text("http"), transport: .plain) != nil)
        #expect(try parse(text("https"), transport: .tls) != nil)
        #expect(throws: Refusal.self) { try parse(text("https"), transport: .plain) }
        #expect(throws: Refusal.self) { try parse(text("http"), transport: .tls) }
    }

    /// The Host field is added to the head, so that the backend, which is spoken to in HTTP/1.1, gets one.
    @Test(arguments: [
        ("GET / HTTP/1.0\r\n\r\n", "default.example:8443"),
        ("GET / HTTP/1.0\r\nA: b\r\n\r\n", "default.example:8443"),
        ("GET http://h:1/ HTTP/1.0\r\n\r\n", "h:1"), ("GET / HTTP/1.0\r\nHost: h\r\n\r\n", "h"),
    ])
    func findsTheAuthorityOfARequestInHTTP10(text: String, authority: String) throws {
        var rules = HeadRules()
        rules.defaultAuthority = "default.example:8443"
        let (request, parsed) = try #require(try parse(text, rules: rules))
        #expect(request.text(request.authority) == authority)
        #expect(request.value(of: .host).map(request.text) == authority)
        #expect(
            String(decoding: request.head.suffix(authority.utf8.count + 4), as: UTF8.self) == authority
                + "\r\n\r\n")
        #expect(parsed.length == text.utf8.count)
        #expect(!parsed.keepsAlive)
        #expect(throws: Refusal.self) {
            try parse(text.replacing("HTTP/1.0\r\n", with: "HTTP/1.1\r\nHost:\r\n"), rules: rules)
        }
    }

    private static let underscored =
        """
        POST /a HTTP/1.1\r\nX_First: 1\r\nHost: h\r\nX-One: 1 \t\r\nContent_Length: 7\r\nX-Two: 2\r\nx_: \
        3\r\n\r\n
        """

    @Test func dropsFieldsWithUnderscoresFromTheHeadItself() throws {
        let (request, parsed) = try #require(try parse(HeadParserTests.underscored))
        #expect(parsed.length == HeadParserTests.underscored.utf8.count)
        #expect(request.fields.map { request.text($0.name) } == ["host", "x-one", "x-two"])
        #expect(request.fields.map { request.text($0.value) } == ["h", "1", "2"])
        #expect(
            String(decoding: request.head, as: UTF8.self)
                == "POST /a HTTP/1.1\r\nhost: h\r\nx-one: 1 \t\r\nx-two: 2\r\n\r\n")
        #expect(request.framing == .none)
        #expect(request.text(request.authority) == "h")
    }

    @Test func keepsOrRefusesFieldsWithUnderscoresWhereItIsTold() throws {
        var rules = HeadRules()
        rules.underscoreFields = .keep
        let request = try #require(try parse(HeadParserTests.underscored, rules: rules)).0
        #expect(request.fields.count == 6)
        rules.underscoreFields = .refuse
        #expect { _ = try parse(HeadParserTests.underscored, rules: rules) } throws: {
            ($0 as? Refusal)?.code == .malformed
        }
        // Fields that are dropped still count.
        var limits = Limits()
        limits.fieldCount = 5
        #expect { _ = try parse(HeadParserTests.underscored, limits: limits) } throws: {
            ($0 as? Refusal)?.code == .tooLarge
        }
    }

    @Test func takesOtherMethodsWhereTheyAreNamed() throws {
        var rules = HeadRules()
        rules.extraMethods = ["M-SEARCH", "TRACE"]
        for method in ["M-SEARCH", "TRACE", "GET", "PURGE", "CONNECTED", "T", "PUT", "PRINT"] {
            let request = try #require(try parse("\(method) / HTTP/1.1\r\nHost: h\r\n\r\n", rules: rules)).0
            #expect(request.text(request.method) == method)
        }
        for method in ["CONNECT", "M-SEARCHES", "M-", String(repeating: "A", count: 33)] {
            #expect(throws: Refusal.self) {
                try parse("\(method) / HTTP/1.1\r\nHost: h\r\n\r\n", rules: rules)
            }
        }
        #expect(
            !HeadRules.isExtraMethod("CONNECT") && !HeadRules.isExtraMethod("a b")
                && !HeadRules.isExtraMethod(""))
    }

    @Test func boundsEverything() {
        var limits = Limits()
        limits.headBytes = 200
        limits.targetBytes = 20
        limits.fieldCount = 3
        for text in [
            "GET /" + String(repeating: "a", count: 20) + " HTTP/1.1\r\nHost: h\r\n\r\n",
            "GET / HTTP/1.1\r\nHost: h\r\nA: a\r\nB: b\r\nC: c\r\n\r\n",
            "GET / HTTP/1.1\r\nHost: h\r\nA: " + String(repeating: "a", count: 200) + "\r\n\r\n",
            "GET / HTTP/1.1\r\nHost: h\r\nA: " + String(repeating: "a", count: 200),
        ] {
            #expect { _ = try parse(text, limits: limits) } throws: { ($0 as? Refusal)?.code == .tooLarge }
        }
    }
}
