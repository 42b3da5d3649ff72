import CountersignLab
import Testing

@Suite struct RawMessageTests {
    @Test func aChangedBodyHasItsLength() {
        var request = RawRequest(method: "POST", target: "/transfer?a=b")
        request.fields = [("Host", "bank.test"), ("Content-Length", "1")]
        request.body = Array("amount=10".utf8)
        #expect(
            request.shown
                == "POST /transfer?a=b HTTP/1.1\r\nHost: bank.test\r\ncontent-length: 9\r\n\r\namount=10")
        #expect(request.path == "/transfer")
        #expect(request.query == "a=b")
    }
}
