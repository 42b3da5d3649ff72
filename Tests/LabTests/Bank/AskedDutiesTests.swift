import CountersignSeal
import CountersignWire
import Foundation
import Testing

@testable import CountersignLab

/// The bank's own duties behind a proxy that asks the gateway, and the proxy's configuration.
@Suite struct AskedDutiesTests {
    private static func request(_ body: String, signed: String? = nil, key: String? = nil) -> RawRequest {
        var request = RawRequest(method: "POST", target: "/transfer", body: Array(body.utf8))
        if let signed {
            let digest = Base64.encode(SHA256.digest(Array(signed.utf8).span).span, as: .standard)
            request.fields["Content-Digest"] = "sha-256=:\(digest):"
            request.fields["Countersign-Checked"] = "head; body=digest"
        }
        request.fields["Countersign-Account"] = "anna"
        if let key { request.fields["Idempotency-Key"] = key }
        return request
    }

    @Test func aBodyIsTheSignedOneOrNone() throws {
        let duties = DecideBackendChecks()
        for (body, signed, status) in [
            ("amount=1", "amount=1", 200), ("amount=9", "amount=1", 400), ("", "amount=1", 400),
            ("amount=1", nil, 400), ("", nil, 200),
        ] as [(String, String?, Int)] {
            let answer = try duties.answer(Self.request(body, signed: signed)) {
                RawResponse(json: ["moved": 1])
            }
            #expect(answer.status == status, "\(body) under a digest of \(signed ?? "nothing")")
        }
    }

    @Test func aWishIsDoneOnceForItsAccount() throws {
        let duties = DecideBackendChecks()
        var times: Int64 = 0
        func moved(_ request: RawRequest) throws -> String {
            try duties.answer(request) {
                times += 1
                return RawResponse(json: ["moved": .integer(times)])
            }.text
        }
        let first = Self.request("a", signed: "a", key: "k")
        #expect(try moved(first) == #"{"moved":1}"#)
        #expect(try moved(first) == #"{"moved":1}"#)
        var other = first
        other.fields["Countersign-Account"] = "bob"
        #expect(try moved(other) == #"{"moved":2}"#)
        #expect(try moved(Self.request("a", signed: "a")) == #"{"moved":3}"#)
    }

    /// The row tests the configuration of the example, so both must be equal.
    @Test func nginxIsSetUpAsTheExampleSays() throws {
        let path = "/" + #filePath.split(separator: "/").dropLast(4).joined(separator: "/")
        let example = String(decoding: try Files.read("\(path)/Examples/decide/nginx.conf"), as: UTF8.self)
        let lines = example.split(separator: "\n").filter {
            let text = $0.drop { $0 == " " }
            return !text.isEmpty && !text.hasPrefix("#")
        }
        #expect(NginxConfiguration.example == lines.joined(separator: "\n"))
        let text = NginxConfiguration(
            folder: "/stage", port: 1, gateway: 2, backend: 3, secret: "hidden", isTLS: true
        ).text
        for place in ["8080", "8443", "3000", "SECRET"] { #expect(!text.contains(place)) }
        #expect(text.contains("listen 127.0.0.1:1 ssl;"))
    }
}
