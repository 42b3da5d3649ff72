import CountersignWire
import Testing

@testable import CountersignHTTP

/// The limits on an upstream's answer hold for a head that comes in one piece, too.
@Suite struct ResponseParserTests {
    /// A head of so many bytes.
    private func head(of size: Int) -> [UInt8] {
        let start = "HTTP/1.1 200 OK\r\nX: "
        return Array((start + String(repeating: "v", count: size - start.utf8.count - 4) + "\r\n\r\n").utf8)
    }

    private func length(of head: [UInt8], arrived: Int? = nil) throws -> Int? {
        var parser = ResponseParser()
        var response = UpstreamResponse()
        let bytes = head.span.extracting(0..<(arrived ?? head.count))
        return try parser.parse(bytes, answeringHEAD: false, into: &response)
    }

    @Test func aHeadHas60KiB() throws {
        #expect(try length(of: head(of: 61_440)) == 61_440)
        for size in [61_441, 65_000, 65_536] {
            #expect(throws: Refusal.self) { try length(of: head(of: size)) }
        }
        #expect(try length(of: head(of: 65_536), arrived: 61_440) == nil)
        #expect(throws: Refusal.self) { try length(of: head(of: 65_536), arrived: 61_441) }
    }

    @Test func aLengthBesideAChunkedBodyIsRefused() throws {
        let start = "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n"
        #expect(try length(of: Array("\(start)\r\n".utf8)) != nil)
        #expect(throws: Refusal.self) { try length(of: Array("\(start)Content-Length: 5\r\n\r\n".utf8)) }
    }

    /// The body that a 204 announces would be read as the next response. Source: RFC 9112 §6.3.
    @Test func aConnectionEndsAfterA204ThatAnnouncesABody() throws {
        for (field, keepsAlive) in [("", true), ("Content-Length: 5\r\n", false)] {
            var parser = ResponseParser()
            var response = UpstreamResponse()
            let head = Array("HTTP/1.1 204 No Content\r\n\(field)\r\n".utf8)
            _ = try parser.parse(head.span, answeringHEAD: false, into: &response)
            #expect(response.keepsAlive == keepsAlive)
        }
    }

    @Test func connectionHas64Members() throws {
        for (count, isRead) in [(64, true), (65, false)] {
            let members = Array(repeating: "b", count: count).joined(separator: ",")
            let head = Array("HTTP/1.1 200 OK\r\nB: a\r\nConnection: \(members)\r\n\r\n".utf8)
            #expect((try? length(of: head)) == (isRead ? head.count : nil))
        }
    }
}

/// Answers with so many bytes of fields.
private struct LargeHandler: Handler {
    func handle(_ exchange: any Exchange) async {
        let field = ServerResponse.Field("X", value: String(repeating: "v", count: 1 << 16))
        await exchange.respond(ServerResponse(status: 200, type: "text/plain", fields: [field], body: []))
    }

    func refuse(_ refusal: Refusal, on exchange: any Exchange) async {}
}

@Suite struct AnswerHeadTests {
    @Test func aHeadThatDoesNotFitIsNotSent() throws {
        let engine = try Engine(handler: LargeHandler())
        defer { engine.stop() }
        let client = try RawClient(port: engine.port)
        defer { client.close() }
        client.send("GET / HTTP/1.1\r\nHost: h\r\n\r\n")
        #expect(client.receiveAll().isEmpty)
    }
}
