// Proves that the scanner and the strict parser read a head alike: on random heads, valid and damaged, whole and
// in pieces, the scanner says what the strict parser says, or declines.
import CountersignWire
import TestRounds
import Testing

@testable import CountersignHTTP

@Suite struct HeadScannerTests {
    @Test func readsRequestsAsTheStrictParserDoes() {
        var source = HeadSource(seed: testSeed())
        let rounds = rounds(100_000)
        var taken = 0
        for _ in 0..<rounds {
            let bytes = source.request()
            guard let scanned = RequestReading(scanning: bytes) else { continue }
            taken += 1
            guard scanned == RequestReading(parsing: bytes) else {
                Issue.record("\(String(decoding: bytes, as: UTF8.self).debugDescription)")
                return
            }
        }
        // Otherwise the comparison would prove nothing.
        #expect(taken > rounds * 3 / 10)
    }

    @Test func readsResponsesAsTheStrictParserDoes() {
        var source = HeadSource(seed: testSeed())
        let rounds = rounds(100_000)
        var taken = 0
        for count in 0..<rounds {
            let bytes = source.response()
            let answersHEAD = count % 4 == 0
            guard let scanned = ResponseReading(scanning: bytes, answeringHEAD: answersHEAD) else { continue }
            taken += 1
            guard scanned == ResponseReading(parsing: bytes, answeringHEAD: answersHEAD) else {
                Issue.record("\(String(decoding: bytes, as: UTF8.self).debugDescription)")
                return
            }
        }
        #expect(taken > rounds * 3 / 10)
    }

    /// The parser as the engine calls it, with a piece of the head and then with all of it.
    @Test func readsPiecesAsTheStrictParserReadsTheWhole() {
        var source = HeadSource(seed: testSeed())
        let next = Array("GET / HTTP/1.0\r\nHost: h\r\n\r\n".utf8)
        for _ in 0..<250 {
            let bytes = source.request()
            let whole = RequestReading(parsing: bytes)
            for cut in 0...bytes.count {
                var parser = HeadParser(limits: Limits())
                var request = Request()
                var parsed: HeadParser.Parsed?
                do {
                    parsed = try parser.parse(bytes.span.extracting(0..<cut), into: &request)
                    if parsed == nil { parsed = try parser.parse(bytes.span, into: &request) }
                } catch {}
                let reading = parsed.map { RequestReading(request, parsed: $0) }
                // The pieces leave nothing behind for the strict parser's next head.
                if parsed != nil { parsed = try? parser.parse(next.span, into: &request) }
                guard reading == whole, (parsed == nil) == (whole == nil) else {
                    Issue.record("\(cut): \(String(decoding: bytes, as: UTF8.self).debugDescription)")
                    return
                }
            }
        }
    }

    /// A request and its parser serve all requests of a connection, and a reading leaves nothing behind.
    @Test func readsOneAfterAnother() {
        var source = HeadSource(seed: testSeed())
        var parser = HeadParser(limits: Limits())
        var request = Request()
        var response = UpstreamResponse()
        var responses = ResponseParser()
        for _ in 0..<2_000 {
            let bytes = source.request()
            if let parsed = try? parser.parse(bytes.span, into: &request) {
                #expect(RequestReading(request, parsed: parsed) == RequestReading(parsing: bytes))
            } else {
                parser = HeadParser(limits: Limits())
            }
            let answer = source.response()
            if let length = try? responses.parse(answer.span, answeringHEAD: false, into: &response) {
                #expect(
                    ResponseReading(response, length: length)
                        == ResponseReading(parsing: answer, answeringHEAD: false))
            } else {
                responses = ResponseParser()
            }
        }
    }

    @Test(
        "the forms of usual clients are read in one pass",
        arguments: [
            "GET / HTTP/1.1\r\nHost: h\r\n\r\n",
            "PUT /a?b?c HTTP/1.1\r\nhost: [::1]:80\r\nContent-Length: 5\r\nConnection: Keep-Alive\r\n\r\nhello",
            "DELETE /%20 HTTP/1.1\r\nHOST:h \t\r\nTransfer-Encoding: Chunked\r\nExpect: 100-continue\r\n\r\n0",
            "POST /a HTTP/1.1\r\nHost: h_\r\nKeep-Alive: 5\r\nConnection: keep-alive\r\nX: \tü \t ü\r\n\r\n",
            "OPTIONS /a HTTP/1.1\r\nHost: h\r\nConnection: close\r\nClose: a\r\nContent-Length: 0\r\n\r\n",
            "GET /a HTTP/1.1\r\nHost: h\r\nA:\r\nB:  \r\nContent-Type: multipart/form-data\r\n\r\n",
        ])
    func takes(_ text: String) throws {
        let bytes = Array(text.utf8)
        let scanned = try #require(RequestReading(scanning: bytes))
        #expect(scanned == RequestReading(parsing: bytes))
    }

    @Test(
        "what is unusual is left to the strict parser",
        arguments: [
            "GET / HTTP/1.0\r\nHost: h\r\n\r\n", "GET http://h/ HTTP/1.1\r\nHost: h\r\n\r\n",
            "OPTIONS * HTTP/1.1\r\nHost: h\r\n\r\n", "\r\nGET / HTTP/1.1\r\nHost: h\r\n\r\n",
            "GET / HTTP/1.1\r\nHost: h\r\nA_B: c\r\n\r\n", "GET / HTTP/1.1\r\nHost: h\r\nA.B: c\r\n\r\n",
            "GET / HTTP/1.1\r\nHost: h\r\nConnection: te\r\n\r\n", "CONNECT / HTTP/1.1\r\nHost: h\r\n\r\n",
            "TRACE / HTTP/1.1\r\nHost: h\r\n\r\n", "PRI / HTTP/1.1\r\nHost: h\r\n\r\n",
            "GET / HTTP/1.1\r\nHost: h\r\nHost: h\r\n\r\n", "GET / HTTP/1.1\r\nAccept: a/b\r\n\r\n",
            "GET / HTTP/1.1\r\nHost: h\r\nA: b\r\n", "GET / HTTP/1.1\r\nHost: h\r\nA: b\r\n c\r\n\r\n",
            "GET / HTTP/1.1\r\nHost: h\r\nContent-Length: 1\r\nTransfer-Encoding: chunked\r\n\r\n",
            "GET / HTTP/1.1\r\nHost: h\r\nContent-Length: 0\r\nTransfer-Encoding: chunked\r\n\r\n",
            "GET / HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\nContent-Length: 0\r\n\r\n",
        ])
    func declines(_ text: String) { #expect(RequestReading(scanning: Array(text.utf8)) == nil) }

    @Test func keepsTheLimits() {
        var limits = Limits()
        limits.fieldCount = 2
        limits.targetBytes = 3
        limits.headBytes = 40
        func takes(_ text: String) -> Bool {
            var request = Request()
            let bytes = Array(text.utf8)
            return HeadScanner(bytes.span)?.request(limits: limits, into: &request) != nil
        }
        #expect(takes("GET /ab HTTP/1.1\r\nHost: h\r\nA: bcdefg\r\n\r\n"))
        #expect(!takes("GET /ab HTTP/1.1\r\nHost: h\r\nA: bcdefgh\r\n\r\n"))
        #expect(!takes("GET /abc HTTP/1.1\r\nHost: h\r\n\r\n"))
        #expect(!takes("GET / HTTP/1.1\r\nHost: h\r\nA:\r\nB:\r\n\r\n"))
        let many = String(repeating: "A: b\r\n", count: 100)
        #expect(RequestReading(scanning: Array("GET / HTTP/1.1\r\nHost: h\r\n\(many)\r\n".utf8)) == nil)
    }
}

/// All that a parser says of a request's head.
private struct RequestReading: Equatable {
    private var head: [UInt8]
    private var ranges: [ByteRange?]
    private var fields: [FieldReading]
    private var names: FieldNames
    private var flags: [Bool]
    private var hopByHopFields: FieldMask
    private var framing: Request.Framing
    private var numbers: [Int]

    init(_ request: Request, parsed: HeadParser.Parsed) {
        head = request.head
        ranges = [
            request.method, request.target, request.absoluteAuthority, request.path, request.query,
            request.authority,
        ]
        fields = request.fields.map(FieldReading.init)
        names = request.names
        flags = [
            request.hasFormType, request.hasMultipartType, parsed.keepsAlive, parsed.expectsContinue,
            request.isBodyWhole,
        ]
        hopByHopFields = request.hopByHopFields
        framing = request.framing
        numbers = [request.minorVersion, parsed.length, request.body.count]
    }

    /// Nil if the scanner declines.
    init?(scanning bytes: [UInt8]) {
        var request = Request()
        guard let parsed = HeadScanner(bytes.span)?.request(limits: Limits(), into: &request) else {
            return nil
        }
        self.init(request, parsed: parsed)
    }

    /// Nil if the strict parser refuses the head or needs more of it.
    init?(parsing bytes: [UInt8]) {
        var parser = HeadParser(limits: Limits())
        var request = Request()
        guard let parsed = try? parser.parseStrictly(bytes.span, into: &request) else { return nil }
        self.init(request, parsed: parsed)
    }
}

private struct ResponseReading: Equatable {
    private var head: [UInt8]
    private var fields: [FieldReading]
    private var names: FieldNames
    private var framing: UpstreamResponse.Framing
    private var flags: [Bool]
    private var numbers: [Int?]
    private var passedOn: FieldMask

    init(_ response: borrowing UpstreamResponse, length: Int) {
        head = response.head
        fields = response.fields.map(FieldReading.init)
        names = response.names
        framing = response.framing
        flags = [response.keepsAlive, response.hasBody]
        numbers = [response.status, response.declaredLength, length]
        passedOn = response.passedOn
    }

    init?(scanning bytes: [UInt8], answeringHEAD: Bool) {
        var response = UpstreamResponse()
        guard
            let length = HeadScanner(bytes.span)?.response(answeringHEAD: answeringHEAD, into: &response)
        else { return nil }
        self.init(response, length: length)
    }

    init?(parsing bytes: [UInt8], answeringHEAD: Bool) {
        var parser = ResponseParser()
        var response = UpstreamResponse()
        let length = try? parser.parseStrictly(bytes.span, answeringHEAD: answeringHEAD, into: &response)
        guard let length else { return nil }
        self.init(response, length: length)
    }
}

private struct FieldReading: Equatable {
    private var name: ByteRange
    private var value: ByteRange
    private var known: FieldName
    private var traits: FieldTraits

    init(_ field: Request.Field) {
        name = field.name
        value = field.value
        known = field.known
        traits = field.traits
    }
}
