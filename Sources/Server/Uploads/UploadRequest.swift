import CountersignGate
import CountersignHTTP
import CountersignWire

/// The body of `POST uploads`: the one request that a ticket is asked for. Source: docs/protocol.md, "Upload
/// tickets".
struct UploadRequest: Sendable {
    /// Bytes of a target.
    static let longestTarget = 4_096
    private static let longestType = 256

    let upload: Upload
    /// The head of that request, read by the rules of any other; its body is not there.
    let head: Request
    /// Seconds.
    let lifetime: Int64

    /// `authority` is the host that the ticket is asked of.
    init(_ members: Members, authority: [UInt8], mostBytes: Int) throws(Refusal) {
        let method = try members.text("method")
        guard Upload.methods.contains(where: { "\($0)" == method }) else {
            throw members.malformed("method", expected: "PUT, POST or PATCH")
        }
        let target = Array(try members.text("target").utf8)
        guard (1...UploadRequest.longestTarget).contains(target.count), target.first == UInt8(ascii: "/")
        else {
            throw members.malformed(
                "target",
                expected: "a path that begins with /, of at most \(UploadRequest.longestTarget) bytes")
        }
        let type = try members.text(ifAny: "content_type").map { Array($0.utf8) }
        if let type {
            let isVisible = type.allSatisfy { (0x20...0x7E).contains($0) }
            guard (1...UploadRequest.longestType).contains(type.count), isVisible, type.first != 0x20,
                type.last != 0x20
            else { throw members.malformed("content_type", expected: "a media type") }
        }
        let length = try members.integer("length", in: 0...mostBytes)
        upload = Upload(
            method: Array(method.utf8), authority: authority, target: target, contentType: type,
            length: Int(length), sha256: try UploadRequest.digest(members))
        lifetime = try members.integer("expires_in", in: 1...86_400)
        guard let head = UploadRequest.head(of: upload) else {
            throw members.malformed("target", expected: "a request target in origin form")
        }
        self.head = head
    }

    /// SHA-256 as `Content-Digest` has it. Source: RFC 9530 §2.
    private static func digest(_ members: Members) throws(Refusal) -> [UInt8] {
        let text = try members.text("content_digest")
        guard text.hasPrefix("sha-256=:"), text.hasSuffix(":"), text.utf8.count == 54,
            let bytes = Base64.decode(String(text.dropFirst(9).dropLast()), .standard), bytes.count == 32
        else { throw members.malformed("content_digest", expected: "sha-256=:BASE64:, of 32 bytes") }
        return bytes
    }

    /// Nil where the strict parser does not read the target as it stands.
    private static func head(of upload: Upload) -> Request? {
        var bytes = upload.method + [UInt8(ascii: " ")] + upload.target
        bytes += Array(" HTTP/1.1\r\nhost: ".utf8) + upload.authority + Array("\r\n\r\n".utf8)
        var request = Request()
        var parser = HeadParser(limits: Limits(), rules: HeadRules(), transport: .tls)
        guard let parsed = try? parser.parse(bytes.span, into: &request), parsed.length == bytes.count,
            Array(request.head[request.target.range]) == upload.target, request.absoluteAuthority.isEmpty,
            request.framing == .none
        else { return nil }
        return request
    }
}
