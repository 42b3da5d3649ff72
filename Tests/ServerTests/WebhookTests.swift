import CountersignAuthority
import CountersignWire
import Testing

@testable import CountersignServer

/// Where webhooks may be delivered, when they are tried again, and what is in a payload.
@Suite struct WebhookTests {
    @Test(arguments: [
        "0.0.0.0", "10.1.2.3", "100.64.0.1", "127.0.0.1", "169.254.169.254", "172.16.0.1", "172.31.255.255",
        "192.168.1.1", "198.18.0.1", "203.0.113.1", "224.0.0.1", "255.255.255.255", "::", "::1",
        "::ffff:127.0.0.1", "::ffff:10.0.0.1", "64:ff9b::7f00:1", "fc00::1", "fd12::1", "fe80::1", "fec0::1",
        "ff02::1", "2001:db8::1", "2001:0:7f00:1::", "2002:7f00:1::", "4000::1", "100::1",
    ])
    func anAddressOfAnInnerNetworkIsNotPublic(text: String) throws {
        #expect(!WebhookAddress.isPublic(try #require(NetworkAddress(text: text))))
    }

    @Test(arguments: [
        "1.1.1.1", "9.255.255.255", "11.0.0.0", "172.32.0.1", "192.169.0.1", "2606:4700::1111", "2a00::1",
    ])
    func anAddressOfTheInternetIsPublic(text: String) throws {
        #expect(WebhookAddress.isPublic(try #require(NetworkAddress(text: text))))
    }

    @Test(arguments: [
        ("https://a.example/x?y=1", "https://a.example/x?y=1"), ("https://a.example", "https://a.example/"),
        ("https://a.example:8443", "https://a.example:8443/"),
        ("https://a.example?q", "https://a.example/?q"),
        ("https://[2606:4700::1111]/", "https://[2606:4700::1111]/"),
    ])
    func urlsAreRead(text: String, expected: String) throws {
        let url = try WebhookURL(text)
        #expect("\(url.origin)\(url.target)" == expected)
    }

    @Test(arguments: [
        "http://a.example/", "https://", "https:///x", "https://u:p@a.example/", "https://a.example/#f",
        "ftp://a.example/", "https://a.example:0/", "https://a.example:99999/", "https://a example/",
        "https://a.example/\u{e9}", "",
    ])
    func otherTextsAreNoURLs(text: String) {
        #expect(throws: OperationalError.self) { try WebhookURL(text) }
    }

    @Test func pausesGrowAndEnd() throws {
        var pauses: [Int64] = []
        var attempts: Int64 = 1
        while let next = WebhookSchedule.next(afterAttempts: attempts, at: 0, share: 0) {
            pauses.append(next)
            attempts += 1
        }
        #expect(pauses == pauses.sorted() && pauses.first == 5 && attempts == 12)
        #expect((2 * 86_400...3 * 86_400).contains(pauses.reduce(0, +)))
        let latest = try #require(WebhookSchedule.next(afterAttempts: 5, at: 100, share: 1))
        #expect(latest == 4_060, "an hour and a tenth")
        #expect(WebhookSchedule.next(afterAttempts: 0, at: 0, share: 0) == nil)
    }

    @Test func aPayloadHasNamesAndNoSecrets() throws {
        var notice = WebhookNotice(.sessionEnded, at: 7, app: try #require(AppName("demo")))
        notice.details = [("reason", "signed-out")]
        #expect(
            String(decoding: notice.body(id: "evt_1"), as: UTF8.self)
                == #"{"id":"evt_1","type":"session.ended","time":7,"app":"demo","reason":"signed-out"}"#)
    }

    @Test(arguments: [(0, 100_000), (1, 100_000), (4, 25_000)])
    func endpointsShareTheOutboxEqually(number: Int, share: Int64) {
        #expect(WebhookShares(among: number).endpoint == share)
    }
}
