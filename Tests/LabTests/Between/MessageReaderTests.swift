import CountersignLab
import Testing

@Suite struct MessageReaderTests {
    @Test(arguments: [
        ("HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nokHTTP/", "GET", 200, "ok", "HTTP/"),
        (
            """
            HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2;a=b\r\nok\r\n3\r\n, k\r\n0\r\nT: 1\r\n\
            \r\nx
            """,
            "GET",
            200, "ok, k", "x"
        ),
        ("HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nHTTP/", "HEAD", 200, "", "HTTP/"),
        ("HTTP/1.1 204 None\r\n\r\nrest", "GET", 204, "", "rest"),
        ("HTTP/1.1 304 Same\r\nContent-Length: 7\r\n\r\nrest", "GET", 304, "", "rest"),
        ("HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 201\r\nContent-Length: 1\r\n\r\nk", "POST", 201, "k", ""),
        ("HTTP/1.0 200 OK\n\nuntil the end", "GET", 200, "until the end", ""),
    ])
    func responses(bytes: String, method: String, status: Int, body: String, left: String) throws {
        var reader = MessageReader(Array(bytes.utf8))
        let read = try reader.response(to: method)
        #expect(read.message.status == status)
        #expect(read.message.text == body)
        #expect(reader.remainingBytes == Array(left.utf8))
        #expect(
            read.bytes + reader.remainingBytes
                == Array(bytes.utf8).suffix(read.bytes.count + reader.remainingBytes.count))
    }

    @Test func requestsFollowEachOther() throws {
        var reader = MessageReader(
            Array(
                "\r\nPOST /a?b HTTP/1.1\r\nContent-Length: 3\r\n\r\nc=dGET / HTTP/1.1\r\nX:\t y \r\n\r\n".utf8
            ))
        let first = try reader.request().message
        #expect(
            first
                == RawRequest(
                    method: "POST", target: "/a?b", fields: [("Content-Length", "3")], body: Array("c=d".utf8)
                ))
        #expect(try reader.request().message == RawRequest(method: "GET", target: "/", fields: [("X", "y")]))
        #expect(throws: NetworkError.cut("recorded no further")) { try reader.request() }
    }

    @Test(arguments: [
        "HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nok", "HTTP/1.1 200 OK\r\nContent-Length: 2",
        "NONSENSE\r\n\r\n", "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n",
        "HTTP/1.1 200 OK\r\nContent-Length: 99999999\r\n\r\n",
        "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n7fffffffffffffff\r\nx",
    ])
    func partsAreNoMessages(bytes: String) {
        var reader = MessageReader(Array(bytes.utf8))
        #expect(throws: NetworkError.self) { try reader.response(to: "GET") }
    }
}
