import CountersignWire
import Testing

@testable import CountersignLab

@Suite struct MACPlaceTests {
    private static let mac = (1...32).map { UInt8($0) }
    private static let hex = Hex.encode(mac.span)
    private static let base64 = Base64.encode(mac.span, as: .standard)

    /// One request for each place in which schemes write a MAC.
    static let requests: [RawRequest] = [
        RawRequest(method: "GET", target: "/balance?user=a&auth_signature=\(hex)&auth_key=k"),
        RawRequest(
            method: "POST", target: "/transfer", fields: [("X-Auth-Signature", hex)], body: Array("{}".utf8)),
        RawRequest(
            method: "GET", target: "/",
            fields: [
                ("Authorization", "AWS4-HMAC-SHA256 Credential=a/b, SignedHeaders=host, Signature=\(hex)")
            ]),
        RawRequest(method: "POST", target: "/transfer", body: Array("app_id=a&sign=\(hex)&rand=r".utf8)),
        RawRequest(method: "GET", target: "/balance?sign=\(hex)"),
        RawRequest(method: "POST", target: "/transfer", body: Array("sign=\(hex)".utf8)),
        RawRequest(
            method: "POST", target: "/transfer",
            fields: [("Signature-Input", #"app=("@method")"#), ("Signature", "app=:\(base64):")]),
    ]

    @Test(arguments: requests) func itIsFoundAndReplaced(_ request: RawRequest) throws {
        let place = try #require(MACLocation(in: request))
        #expect(place.mac == MACPlaceTests.mac)
        #expect(place.request(bearing: place.mac) == request.bytes)
        let other = [UInt8](repeating: 0xAB, count: 32)
        let text = String(decoding: place.request(bearing: other), as: UTF8.self)
        #expect(
            text.contains(Hex.encode(other.span)) || text.contains(Base64.encode(other.span, as: .standard)))
        #expect(text.utf8.count == request.bytes.count)
    }

    @Test func aRequestWithoutOneHasNone() {
        #expect(
            MACLocation(
                in: RawRequest(
                    method: "GET", target: "/balance",
                    fields: [("Authorization", "Bearer \(MACPlaceTests.hex)")]))
                == nil)
        #expect(MACLocation(in: RawRequest(method: "GET", target: "/?sign=short")) == nil)
    }
}
