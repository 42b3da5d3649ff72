import CountersignSeal
import CountersignTransport
import CountersignWire

/// A form with files, as browsers send it: `multipart/form-data`. Source: RFC 7578, RFC 2046 §5.1.
///
/// ```swift
/// var form = MultipartForm()
/// form.add("title", "Holiday")
/// try form.add("photo", file: path, type: "image/jpeg")
/// let (data, response) = try await client.data(for: .multipart(.post, "/albums", form))
/// ```
public struct MultipartForm: Sendable {
    private enum Content: Sendable {
        case bytes([UInt8])
        case file(path: String)
    }

    private struct Part: Sendable {
        let head: [UInt8]
        let content: Content
    }

    /// Separates the parts; drawn at random, so that no content contains it.
    let boundary: String
    private var parts: [Part] = []

    /// A form without parts.
    public init() { boundary = "countersign-\(Hex.encode(SystemRandom().bytes(16).span))" }

    /// Adds a field of text.
    public mutating func add(_ name: String, _ value: String) {
        parts.append(Part(head: head(name, fileName: nil, type: nil), content: .bytes(Array(value.utf8))))
    }

    /// Adds a file in memory. `type` is a media type such as `image/jpeg`.
    public mutating func add(
        _ name: String, bytes: [UInt8], fileName: String, type: String = "application/octet-stream"
    ) throws(CountersignError) {
        try check(type)
        parts.append(Part(head: head(name, fileName: fileName, type: type), content: .bytes(bytes)))
    }

    /// Adds a file on disk, which is read in pieces: once for the digest that is signed, and once for each
    /// copy that is sent. Without `fileName` the last part of the path is its name.
    public mutating func add(
        _ name: String, file path: String, fileName: String? = nil, type: String = "application/octet-stream"
    ) throws(CountersignError) {
        try check(type)
        let fileName = fileName ?? path.split(separator: "/").last.map(String.init) ?? path
        parts.append(Part(head: head(name, fileName: fileName, type: type), content: .file(path: path)))
    }

    /// The field that goes with the form.
    var contentType: HeaderField {
        HeaderField("Content-Type", value: "multipart/form-data; boundary=\(boundary)")
    }

    /// In memory if all parts are, else a stream that can be read again. Throws if a file cannot be read.
    func body() throws(CountersignError) -> APIRequest.Body {
        var pieces: [Content] = []
        var length = 0
        for part in parts {
            pieces.append(.bytes(Array("--\(boundary)\r\n".utf8) + part.head))
            pieces.append(part.content)
            pieces.append(.bytes(Array("\r\n".utf8)))
        }
        pieces.append(.bytes(Array("--\(boundary)--\r\n".utf8)))
        var whole: [UInt8]? = []
        for piece in pieces {
            switch piece {
            case .bytes(let bytes):
                length += bytes.count
                whole?.append(contentsOf: bytes)
            case .file(let path):
                length += try FileBody(path: path).size()
                whole = nil
            }
        }
        if let whole { return .bytes(whole) }
        let stream = Stream(pieces: pieces)
        return .replayable(ReplayableBody(.bytes(length)) { stream })
    }

    /// Names are quoted as browsers quote them: `"`, CR and LF as `%XX`. Source: WHATWG HTML,
    /// "multipart/form-data encoding algorithm"; RFC 7578 §5.1 leaves non-ASCII names as UTF-8.
    private func head(_ name: String, fileName: String?, type: String?) -> [UInt8] {
        var text = "Content-Disposition: form-data; name=\"\(quoted(name))\""
        if let fileName { text += "; filename=\"\(quoted(fileName))\"" }
        if let type { text += "\r\nContent-Type: \(type)" }
        return Array("\(text)\r\n\r\n".utf8)
    }

    private func quoted(_ text: String) -> String {
        var quoted = ""
        for scalar in text.unicodeScalars {
            switch scalar {
            case "\"": quoted += "%22"
            case "\r": quoted += "%0D"
            case "\n": quoted += "%0A"
            default: quoted.unicodeScalars.append(scalar)
            }
        }
        return quoted
    }

    private func check(_ type: String) throws(CountersignError) {
        guard !type.isEmpty, type.utf8.allSatisfy({ (0x20...0x7E).contains($0) }) else {
            throw .misuse("multipart: expected a media type of visible ASCII characters, such as image/jpeg")
        }
    }

    /// The pieces in order; files are read in pieces, too.
    private struct Stream: AsyncSequence, Sendable {
        typealias Element = [UInt8]
        let pieces: [Content]

        func makeAsyncIterator() -> Iterator { Iterator(rest: pieces[...]) }

        struct Iterator: AsyncIteratorProtocol {
            var rest: ArraySlice<Content>
            var file: FileBody.Iterator?

            mutating func next() async throws -> [UInt8]? {
                while true {
                    if let piece = try await file?.next() { return piece }
                    file = nil
                    guard let content = rest.popFirst() else { return nil }
                    switch content {
                    case .bytes(let bytes) where bytes.isEmpty: continue
                    case .bytes(let bytes): return bytes
                    case .file(let path): file = FileBody(path: path).makeAsyncIterator()
                    }
                }
            }
        }
    }
}

extension APIRequest {
    /// A request that carries a form with files. Throws if one of its files cannot be read.
    public static func multipart(
        _ method: APIMethod, _ path: String, _ form: MultipartForm
    ) throws(CountersignError) -> APIRequest {
        APIRequest(method, path, fields: [form.contentType], body: try form.body())
    }
}
