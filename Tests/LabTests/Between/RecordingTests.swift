import CountersignLab
import Testing

@Suite struct RecordingTests {
    /// `open sesame?` in various encodings.
    @Test(arguments: [
        "pw=open sesame?", "pw=open+sesame%3F", "pw=open%20sesame%3f&x", "b3BlbiBzZXNhbWU/",
        "xb3BlbiBzZXNhbWU_x",
        // After one and two other bytes, as in `Basic` or in a JSON text that was encoded as a whole.
        "YTpvcGVuIHNlc2FtZT8=", "YW46b3BlbiBzZXNhbWU/Iiw=", "YW5uOm9wZW4gc2VzYW1lPw%3D%3D",
        "Om9wZW4gc2VzYW1lP3g=",
    ])
    func encodingsHideNothing(text: String) {
        let there = Recording([RecordedConnection(client: Array(text.utf8))])
        #expect(there.contains("open sesame?"))
        #expect(Recording([RecordedConnection(server: Array(text.utf8))]).contains("open sesame?"))
        #expect(!there.contains("open sesame!"))
    }

    @Test func nothingIsInNothing() {
        #expect(!Recording([RecordedConnection()]).contains("a"))
        #expect(!Recording([]).contains(""))
    }

    @Test func unansweredRequestsAreSeen() {
        let request = RawRequest(method: "GET", target: "/a", fields: [("Host", "h")])
        let conversation = RecordedConnection(
            client: request.bytes + request.bytes, server: RawResponse(200, body: Array("x".utf8)).bytes)
        #expect(conversation.exchanges.map { $0.response?.text } == ["x", nil])
    }

    @Test func whatIsShownMovesNoCursor() {
        let shown = Recording([RecordedConnection(client: Array("GET /\u{1B}[2J\r\nx\u{9B}y".utf8))]).shown
        #expect(shown == "→ GET /\\u{1b}[2J\n→ x\\u{9b}y\n")
    }

    @Test func recordsAreShownAsRecords() {
        let bytes: [UInt8] = [22, 3, 1, 0, 2, 1, 0x0A, 23, 3, 3, 0, 1, 0xFF, 23, 3]
        #expect(
            RecordedConnection(client: bytes).shown
                == "→ TLS handshake, 2 bytes: 01 0a\n→ TLS application_data, 1 bytes: ff\n")
    }
}
