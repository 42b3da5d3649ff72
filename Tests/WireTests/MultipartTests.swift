// Multipart bodies are read in one way, or not at all.
import CountersignWire
import Testing

@Suite struct MultipartTests {
    private static func body(_ lines: String...) -> [UInt8] { Array(lines.joined(separator: "\r\n").utf8) }

    private static func part(_ disposition: String, holding content: String = "1") -> String {
        "--b\r\nContent-Disposition: form-data; \(disposition)\r\n\r\n\(content)"
    }

    private func read(_ body: [UInt8], type: String = "multipart/form-data; boundary=b") -> [String]? {
        let type = Array(type.utf8)
        guard let boundary = Multipart.Boundary(contentType: type.span) else { return nil }
        guard let parts = try? Multipart.read(body.span, between: boundary) else { return nil }
        return parts.map { part in
            let name = body.span.extracting(part.name.range).text
            let content = body.span.extracting(part.content.range).text
            return "\(part.kind == .file ? "file " : "")\(name)=\(content)"
        }
    }

    @Test("bodies as clients send them")
    func good() {
        let two = MultipartTests.body(
            MultipartTests.part("name=\"a\"", holding: "x\r\ny"),
            MultipartTests.part("name=\"f\"; filename=\"p.png\"", holding: ""),
            "--b--", "")
        #expect(read(two) == ["a=x\r\ny", "file f="])
        let typed = MultipartTests.body(
            "--b", "content-disposition: form-data; name=\"a\"", "Content-Type: text/plain",
            "Content-Length: 2", "",
            "-b", "--b--")
        #expect(read(typed) == ["a=-b"])
    }

    @Test(
        "what two readers could understand differently",
        arguments: [
            "", "--b--\r\n", "x\r\n" + part("name=\"a\"") + "\r\n--b--",
            part("name=\"a\"") + "\r\n--b--\r\nx",
            part("name=\"a\""), part("name=\"a\"") + "\r\n--b", part("name=\"a\"") + "\n--b--",
            part("name=\"a\"", holding: "x\n--b\ny") + "\r\n--b--",
            part("name=\"a\"", holding: "x--b") + "\r\n--b--",
            part("name=\"a\"", holding: "x\r\n--bc") + "\r\n--b--", part("name=\"a\"") + "\r\n--b \r\n--b--",
            part("name=a") + "\r\n--b--", part("name=\"\"") + "\r\n--b--",
            part("name=\"a\\\"b\"") + "\r\n--b--",
            part("name=\"a%22\"") + "\r\n--b--", part("name=\"_charset_\"") + "\r\n--b--",
            part("name=\"a\"; filename=\"\"") + "\r\n--b--",
            part("name=\"a\"; filename=\"x;y\"") + "\r\n--b--",
            part("name=\"a\"; filename*=UTF-8''x") + "\r\n--b--",
            part("filename=\"x\"; name=\"a\"") + "\r\n--b--",
            part("name=\"a\"") + "\r\n" + part("name=\"a\"") + "\r\n--b--",
            part("name=\"a.b\"") + "\r\n" + part("name=\"A_b[]\"; filename=\"x\"") + "\r\n--b--",
            part("name=\"a\"\r\nContent-Transfer-Encoding: binary") + "\r\n--b--",
            part("name=\"a\"\r\nContent-Type: text/plain; charset=utf-8") + "\r\n--b--",
            part("name=\"a\"\r\nContent-Length: 2") + "\r\n--b--",
            part("name=\"a\"; filename=\"x\"\r\nContent-Type: multipart/mixed; boundary=c") + "\r\n--b--",
            part("name=\"a\"\r\n X: folded") + "\r\n--b--", part("name=\"a\"\r\nX: 1") + "\r\n--b--",
        ])
    func bad(_ text: String) { #expect(read(Array(text.utf8)) == nil) }

    @Test(
        "content types",
        arguments: [
            ("multipart/form-data; boundary=b", true), ("Multipart/Form-Data;boundary=\"b\"", true),
            ("multipart/form-data", false), ("multipart/form-data; boundary=", false),
            ("multipart/form-data; boundary=b; charset=utf-8", false),
            ("multipart/form-data; boundary=b ", false),
            ("multipart/form-data; charset=utf-8; boundary=b", false), ("multipart/mixed; boundary=b", false),
            ("multipart/form-data; boundary=\"b", false), ("multipart/form-data; Boundary=b", false),
            ("multipart/form-data, multipart/form-data; boundary=b", false),
        ])
    func types(_ row: (type: String, isRead: Bool)) {
        let body = MultipartTests.body(MultipartTests.part("name=\"a\""), "--b--")
        #expect((read(body, type: row.type) != nil) == row.isRead)
    }

    @Test("more parts than are looked at")
    func bounds() {
        func many(_ count: Int, with more: String = "") -> [UInt8] {
            let parts = (0..<count).map { MultipartTests.part("name=\"n\($0)\"\(more)") }
            return Array((parts + ["--b--"]).joined(separator: "\r\n").utf8)
        }
        #expect(read(many(Multipart.mostParts))?.count == Multipart.mostParts)
        #expect(read(many(Multipart.mostParts + 1)) == nil)
        #expect(read(many(Multipart.mostFiles, with: "; filename=\"x\""))?.count == Multipart.mostFiles)
        #expect(read(many(Multipart.mostFiles + 1, with: "; filename=\"x\"")) == nil)
        let long = String(repeating: "n", count: Multipart.mostNameBytes + 1)
        #expect(read(MultipartTests.body(MultipartTests.part("name=\"\(long)\""), "--b--")) == nil)
    }

    /// The short form of the fuzz target: no byte that is changed, left out or put in makes it trap, and what
    /// is still read lies inside the body.
    @Test("changed bytes")
    func changed() {
        let whole = MultipartTests.body(
            MultipartTests.part("name=\"a\"", holding: "x"),
            MultipartTests.part("name=\"f\"; filename=\"p\"", holding: "yz"), "--b--", "")
        for index in whole.indices {
            for byte in [UInt8](" -\"\\\r\n;:=b%\u{7F}".utf8) + [0, 0xFF] {
                for edit in 0..<3 {
                    var body = whole
                    switch edit {
                    case 0: body[index] = byte
                    case 1: body.insert(byte, at: index)
                    default: body.removeSubrange(index..<min(body.count, index + 1 + Int(byte % 8)))
                    }
                    if let parts = read(body) { #expect(parts.count <= 2) }
                }
            }
        }
    }
}
