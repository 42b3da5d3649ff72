import CountersignWire
import Testing

@testable import CountersignHTTP

@Suite struct HeadParserTests {
    private func parse(_ text: String, limits: Limits = Limits()) throws -> (Request, HeadParser.Parsed)? {
        var parser = HeadParser(limits: limits)
        var request = Request()
        let bytes = Array(text.utf8)
        guard let parsed = try parser.parse(bytes.span, into: &request) else { return nil }
        return (request, parsed)
    }

    @Test func readsARequest() throws {
        let (request, parsed) = try #require(
            try parse(
                "POST /a/b?x=1&y=%2F HTTP/1.1\r\nHost: Example.com:8443\r\nX-One:  two \t\r\nContent-Length: 5\r\n\r\nhello"
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

    @Test(arguments: [
        ("", true), ("Connection: close\r\n", false), ("Connection: foo, Close\r\n", false),
        ("Connection: keep-alive\r\n", true),
    ])
    func knowsWhetherTheConnectionGoesOn(field: String, keepsAlive: Bool) throws {
        let parsed = try #require(try parse("GET / HTTP/1.1\r\nHost: h\r\n\(field)\r\n")?.1)
        #expect(parsed.keepsAlive == keepsAlive)
    }

    /// Each of these is read in two ways by somebody, or by nobody.
    @Test(arguments: [
        "\r\nGET / HTTP/1.1\r\nHost: h\r\n\r\n", " GET / HTTP/1.1\r\nHost: h\r\n\r\n",
        "GET  / HTTP/1.1\r\nHost: h\r\n\r\n",
        "GET / HTTP/1.1 \r\nHost: h\r\n\r\n", "GET / HTTP/2.0\r\nHost: h\r\n\r\n", "GET /\r\nHost: h\r\n\r\n",
        "GET / HTTP/1.\r\nHost: h\r\n\r\n", "GET http://h/ HTTP/1.1\r\nHost: h\r\n\r\n",
        "GET * HTTP/1.1\r\nHost: h\r\n\r\n",
        "GET /#a HTTP/1.1\r\nHost: h\r\n\r\n", "GET /a\u{0}b HTTP/1.1\r\nHost: h\r\n\r\n",
        "GET /ü HTTP/1.1\r\nHost: h\r\n\r\n",
        "GET / HTTP/1.1\nHost: h\n\n", "GET / HTTP/1.1\r\nHost: h\n\r\n", "GET / HTTP/1.1\r\nHost: h\rX: y\r\n\r\n",
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
