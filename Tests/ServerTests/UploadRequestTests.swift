import CountersignGate
import CountersignWire
import Testing

@testable import CountersignServer

/// The body of `POST uploads` yields exactly one request, or is refused as malformed.
@Suite struct UploadRequestTests {
    private static let digest = "sha-256=:47DEQpj8HBSa+/TImW+5JCeuQeRkm5NMpJWZG3hSuFU=:"

    private func read(_ members: String) throws(Refusal) -> UploadRequest {
        try UploadRequest(
            RequestBodyMembers(of: Array("{\(members)}".utf8)), authority: Array("shop.example".utf8),
            mostBytes: 1_000)
    }

    private func body(_ changes: [String: String] = [:]) -> String {
        var members = [
            "method": #""PUT""#, "target": #""/files/7?x=1""#,
            "content_digest": "\"\(UploadRequestTests.digest)\"",
            "length": "1000", "expires_in": "86400",
        ]
        members.merge(changes) { $1 }
        return members.map { "\"\($0.key)\":\($0.value)" }.joined(separator: ",")
    }

    @Test("what is whole is read")
    func good() throws {
        let asked = try read(body(["content_type": #""image/jpeg""#]))
        #expect(
            asked.upload.method == Array("PUT".utf8) && asked.upload.authority == Array("shop.example".utf8))
        #expect(asked.upload.target == Array("/files/7?x=1".utf8) && asked.upload.length == 1_000)
        #expect(asked.upload.contentType == Array("image/jpeg".utf8) && asked.lifetime == 86_400)
        #expect(asked.upload.sha256.count == 32 && asked.upload.sha256.first == 0xE3)
        #expect(asked.head.text(asked.head.path) == "/files/7")
        #expect(try read(body()).upload.contentType == nil)
        #expect(try read(body(["content_type": "null"])).upload.contentType == nil)
    }

    @Test(
        "what is not is refused",
        arguments: [
            ("method", #""GET""#), ("method", #""PUT /x HTTP/1.1\r\n""#), ("method", "1"),
            ("target", #""files""#), ("target", #""//a b""#), ("target", #""/a\u0000""#),
            ("target", #""/a\r\nhost: b""#), ("target", #""/é""#),
            ("target", #""/a#b""#), ("target", #""""#), ("content_digest", #""sha-256=:AAAA:""#),
            ("content_digest", #""""#), ("content_digest", "null"), ("length", "-1"), ("length", "1001"),
            ("length", "1.5"), ("expires_in", "0"), ("expires_in", "86401"), ("content_type", #""a\r\nb""#),
            ("content_type", #"" a""#), ("content_type", #""é""#), ("content_type", "7"),
        ])
    func refused(_ name: String, _ value: String) {
        #expect { _ = try read(body([name: value])) } throws: { ($0 as? Refusal)?.code == .malformed }
    }

    @Test(
        "each member but the type must be there",
        arguments: ["method", "target", "content_digest", "length", "expires_in"])
    func missing(_ name: String) {
        #expect { _ = try read(body([name: "null"])) } throws: { ($0 as? Refusal)?.code == .malformed }
    }
}
